//! A making, a removal, a restore or an expiry that can be begun again and again from one prepared
//! ground.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::sync::Arc;

use freehold_git::GitWorkspaces;
use freehold_git::faults::Faults;
use freehold_kernel::*;
use freehold_store::{Clock, Host, HostError, NoRuntimes, OnThisThread, Operation, Target, Wanted};

use crate::support::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A worktree on a new branch.
    Make,
    /// A worktree on a branch that is there.
    MakeOnBranch,
    /// A worktree with every kind of unsaved work and a submodule goes, its trash too.
    Remove,
    /// What it left in salvage goes into a worktree that is made for it.
    PutBack,
    /// The worktree comes out of kept trash, in place.
    Untrash,
    /// The same, and a barrier is there before it is owned: into trash again.
    TrashAgain,
    /// Salvage that may expire goes, and its bytes with it; another's stay.
    Expire,
}

impl What {
    pub(crate) const ALL: [What; 7] = [
        What::Make,
        What::MakeOnBranch,
        What::Remove,
        What::PutBack,
        What::Untrash,
        What::TrashAgain,
        What::Expire,
    ];
}

/// What is in the worktree that is removed and in no commit.
const MARKERS: &[(&str, &str)] = &[
    ("story.txt", "changed and not staged\n"),
    ("staged.txt", "staged and changed since\n"),
    ("MARKER", "untracked\n"),
    ("deep/er/MARKER", "untracked below\n"),
    ("build.log", "ignored\n"),
    ("part/inner.txt", "changed in the submodule\n"),
    ("part/NEW", "untracked in the submodule\n"),
];

pub(crate) struct Scene {
    pub(crate) what: What,
    pub(crate) ground: Ground,
    /// A copy of the ground as it was prepared.
    kept: tempfile::TempDir,
    pub(crate) root: String,
    tip: String,
    /// The markers' texts by the names of their blobs.
    pub(crate) markers: BTreeMap<String, String>,
    /// What is put back or expires.
    pub(crate) id: String,
    /// The worktree as it was before it was removed.
    pub(crate) before: Option<State>,
}

/// Mode, object, stage, flags, path; modes, contents and links.
pub(crate) type State = (Vec<String>, BTreeMap<String, String>);

const START: Time = Time(1_700_000_000_000_000);

/// By which clock, and on which machine: the program goes by the real ones.
fn here(what: What) -> (Clock, String) {
    match what {
        What::Expire => (Clock::System, freehold_cli::machine_name()),
        _ => (Clock::manual(START), "test-machine".to_owned()),
    }
}

impl Scene {
    pub(crate) fn new(what: What) -> Scene {
        let (clock, _) = here(what);
        let ground = Ground::on(StorePlace::fresh, clock);
        let part = ground.folder.path().canonicalize().unwrap().join("part");
        std::fs::create_dir(&part).unwrap();
        git_in(&part, &["init", "--quiet", "--initial-branch=main"]);
        std::fs::write(part.join("inner.txt"), "inner\n").unwrap();
        git_in(&part, &["add", "--all"]);
        git_in(&part, &["commit", "--quiet", "--message", "inner"]);
        std::fs::write(ground.repository.join(".gitignore"), "*.log\n").unwrap();
        let allow = "protocol.file.allow=always";
        let url = part.to_str().unwrap();
        ground.git(&["-c", allow, "submodule", "--quiet", "add", url, "part"]);
        ground.git(&["add", "--all"]);
        ground.git(&["commit", "--quiet", "--message", "second"]);
        let tip = ground.git(&["rev-parse", "HEAD"]);

        let mut scene = Scene {
            what,
            ground,
            kept: tempfile::Builder::new().prefix("freehold-kept-").tempdir().unwrap(),
            root: String::new(),
            tip,
            markers: BTreeMap::new(),
            id: String::new(),
            before: None,
        };
        scene.prepare();
        copy(scene.ground.folder.path(), scene.kept.path());
        scene
    }

    fn prepare(&mut self) {
        let host = self.host(GitWorkspaces::new());
        workspace(&host, "w");
        task(&host, "t").unwrap();
        environment(&host, "e", "t").unwrap();
        self.root = host.register_root(&ann(), &self.ground.root_path).unwrap();
        match self.what {
            What::Make => {}
            What::MakeOnBranch => {
                self.ground.git(&["branch", "b"]);
            }
            What::Remove => {
                self.unsaved(&host, "e", "b", "");
                host.delete_task(&ann(), "t", &Operation::new("delete")).unwrap();
            }
            What::PutBack | What::Untrash | What::TrashAgain => self.prepare_kept(&host),
            What::Expire => self.prepare_expiry(&host),
        }
    }

    /// An instance as this scene has them.
    pub(crate) fn host(&self, git: GitWorkspaces) -> TestHost {
        let (_, machine) = here(self.what);
        let store = self.ground.store.open(&self.ground.clock);
        let mut host =
            Host::start(store, git, OnThisThread, Box::new(NoRuntimes), &machine).unwrap();
        self.ground.pace(&mut host);
        host
    }

    /// A worktree with every kind of unsaved work, whose texts end so.
    pub(crate) fn unsaved(
        &mut self,
        host: &TestHost,
        environment: &str,
        branch: &str,
        end: &str,
    ) -> PathBuf {
        let wanted = wanted(&self.ground, &self.root, environment, branch);
        let made = host.make_worktree(&ann(), &wanted).unwrap();
        let work = made.place.path;
        // A submodule comes back with its trash. Out of salvage its files are only shown: whether
        // it is set up in another worktree is not for Freehold to say.
        let with_part = self.what != What::PutBack;
        if with_part {
            // Without the template's samples, each of which would be looked at many times.
            let bare = ["-c", "init.templateDir=", "-c", "protocol.file.allow=always"];
            let update = ["submodule", "--quiet", "update", "--init"];
            git_in(&work, &[&bare[..], &update[..]].concat());
        }
        std::fs::create_dir_all(work.join("deep/er")).unwrap();
        std::fs::write(work.join("staged.txt"), "staged\n").unwrap();
        git_in(&work, &["add", "staged.txt"]);
        for (name, text) in MARKERS.iter().filter(|m| with_part || !m.0.starts_with("part/")) {
            let text = format!("{text}{end}");
            std::fs::write(work.join(name), &text).unwrap();
            let blob = git_in(&work, &["hash-object", "--no-filters", name]);
            self.markers.insert(blob, text);
        }
        work
    }

    /// Everything as it was prepared.
    pub(crate) fn begin(&mut self) {
        for entry in entries(self.ground.folder.path()) {
            if std::fs::symlink_metadata(&entry).unwrap().is_dir() {
                std::fs::remove_dir_all(entry).unwrap();
            } else {
                std::fs::remove_file(entry).unwrap();
            }
        }
        copy(self.kept.path(), self.ground.folder.path());
        (self.ground.clock, _) = here(self.what);
    }

    /// The making or the removal, in this process. What it came to is judged later.
    pub(crate) fn act(&self, faults: Arc<dyn Faults>) -> Result<(), HostError> {
        let git = GitWorkspaces::new().with_faults(faults);
        let host = self.host(git.clone());
        let closer = || self.host(GitWorkspaces::new());
        act(&host, &git, self.what, &wanted(&self.ground, &self.root, "e", "b"), &self.id, &closer)
    }

    /// The same in a process of its own, which says what it met. None if it came to its end.
    pub(crate) fn act_apart(&self, at: usize, fault: &str) -> Option<String> {
        let output = Program::new(std::env::current_exe().unwrap())
            .args(["faults_the_other_process", "--exact", "--nocapture", "--test-threads=1"])
            .env("FREEHOLD_FAULTS_WHAT", format!("{:?}", self.what))
            .env("FREEHOLD_FAULTS_AT", at.to_string())
            .env("FREEHOLD_FAULTS_FAULT", fault)
            .env("FREEHOLD_FAULTS_STORE", self.ground.store.text())
            .env("FREEHOLD_FAULTS_REPOSITORY", &self.ground.repository)
            .env("FREEHOLD_FAULTS_ROOT", &self.root)
            .env("FREEHOLD_FAULTS_ID", &self.id)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let word = |w: &str| said.lines().find_map(|l| l.strip_prefix(w)).map(str::to_owned);
        let met = word("FAULTS met ");
        if met.is_none() {
            let err = String::from_utf8_lossy(&output.stderr);
            assert!(word("FAULTS ended").is_some(), "neither died nor ended: {said}{err}");
        }
        met
    }

    /// Every byte that is in no commit is somewhere: in its place, in the trash, in salvage.
    pub(crate) fn nothing_lost(&self, when: &str) {
        let mut left = self.markers.clone();
        let mut todo = vec![self.ground.root_path.clone()];
        let mut contents = BTreeSet::new();
        while let Some(folder) = todo.pop() {
            // What is put together there is kept only once it is moved out of it.
            if folder.ends_with("salvage-scratch") {
                continue;
            }
            if folder.join("HEAD").is_file() && folder.join("objects").is_dir() {
                let dir = format!("--git-dir={}", folder.display());
                let all = ["rev-list", "--objects", "--no-object-names", "--all"];
                let args: Vec<&str> = [dir.as_str()].into_iter().chain(all).collect();
                for name in git_in(&self.ground.repository, &args).lines() {
                    left.remove(name);
                }
                continue;
            }
            for path in entries(&folder) {
                let meta = std::fs::symlink_metadata(&path).unwrap();
                if meta.is_dir() {
                    todo.push(path);
                } else if meta.is_file() && meta.len() < 100 {
                    contents.insert(std::fs::read_to_string(&path).unwrap_or_default());
                }
            }
        }
        // Whole or not at all: a file that is found in a folder counts by its content.
        left.retain(|_, text| !contents.contains(text));
        assert_eq!(left, BTreeMap::new(), "lost {when}");
    }

    /// Until nothing is open but what is kept on purpose.
    pub(crate) fn settle(&self, host: &TestHost) {
        let kept = matches!(self.what, What::Untrash | What::TrashAgain);
        quiet_but(&self.ground, host, if kept { &["trash kept"] } else { &[] });
    }

    /// Without faults from here on: it converges, and nothing is left behind.
    pub(crate) fn judge(&self, came: Option<&Result<(), HostError>>) {
        self.nothing_lost("at once");
        let ground = &self.ground;
        let host = self.host(GitWorkspaces::new());
        ground.lapse(Span::minutes(2));
        self.settle(&host);
        match self.what {
            What::PutBack | What::Untrash | What::TrashAgain => self.judge_kept(&host, came),
            What::Expire => self.judge_expiry(&host),
            What::Make | What::MakeOnBranch => {
                let places = host.places_of("t").unwrap();
                if places.is_empty() {
                    assert!(!matches!(came, Some(Ok(()))), "it was made, and is not there");
                    let on = self.what == What::MakeOnBranch;
                    assert_tracked(ground, &host, if on { &["b"] } else { &[] });
                    host.make_worktree(&ann(), &wanted(ground, &self.root, "e", "b")).unwrap();
                }
                assert_tracked(ground, &host, &["b"]);
                let [place] = &host.places_of("t").unwrap()[..] else { panic!("not one place") };
                assert_eq!(git_in(&place.path, &["status", "--porcelain"]), "");
                assert_eq!(git_in(&place.path, &["rev-parse", "HEAD"]), self.tip);
                let story = std::fs::read_to_string(place.path.join("story.txt")).unwrap();
                assert_eq!(story, "one\n");
            }
            What::Remove => {
                // What is final until a person acts (W-38) is tried again by that person.
                let failed: Vec<JobId> = rows(&host, &[TableId::Jobs])
                    .view
                    .jobs
                    .iter()
                    .filter(|j| j.state == JobState::Failed)
                    .map(|j| j.id)
                    .collect();
                for job in failed {
                    host.ask(&ann(), None, |_| {
                        Ok(Command::Operator(OperatorCommand::Retry { job }))
                    })
                    .unwrap();
                    quiet(ground, &host);
                }
                assert_eq!(jobs(&host), [(Trigger::Delete, JobState::Succeeded)]);
                assert_tracked(ground, &host, &["b"]);
            }
        }
        self.nothing_lost("in the end");
        assert_eq!(ground.git(&["rev-parse", "b"]), self.tip, "the branch");
        // What a scratch could not be cleared of goes with the next salvage or collection.
        for root in host.roots().unwrap() {
            freehold_git::salvage::reclaim(&root).unwrap();
        }
        let book = ground.root_path.join(".freehold");
        for store in entries(&book) {
            assert_eq!(entries(&store.join("salvage-scratch")), Vec::<PathBuf>::new());
        }
        let locks = find_locks(&ground.repository.join(".git"));
        assert_eq!(locks, Vec::<PathBuf>::new(), "locks of git");
        ground.git(&["fsck", "--no-dangling", "--no-progress"]);
    }
}

/// What is done under faults. `closer` starts another instance, which meets none.
fn act(
    host: &TestHost,
    git: &GitWorkspaces,
    what: What,
    wanted: &Wanted,
    id: &str,
    closer: &dyn Fn() -> TestHost,
) -> Result<(), HostError> {
    match what {
        What::Make | What::MakeOnBranch => host.make_worktree(&ann(), wanted).map(drop),
        What::Remove => host.tick().map(drop),
        What::PutBack | What::Untrash => host.put_back(&ann(), id, &Target::default()).map(drop),
        What::TrashAgain => {
            let overtake = &mut |at: &'static str| {
                if at == "restored" {
                    closer().archive_task(&ann(), "t", &Operation::new("again")).unwrap();
                }
            };
            match host.put_back_between(&ann(), id, &Target::default(), overtake) {
                Ok(_) => panic!("the barrier was not seen"),
                Err(HostError::Undone { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        }
        What::Expire => {
            host.expire_salvage(id)?;
            for root in host.roots()? {
                git.reclaim_salvage(&root)?;
            }
            Ok(())
        }
    }
}

/// What [`Scene::act_apart`] starts.
pub(crate) fn act_here(faults: Arc<dyn Faults>) {
    let told = |name: &str| std::env::var(format!("FREEHOLD_FAULTS_{name}")).unwrap();
    let what = *What::ALL.iter().find(|w| format!("{w:?}") == told("WHAT")).unwrap();
    let (clock, machine) = here(what);
    let start = |git| {
        let store = StorePlace::told(&told("STORE")).open(&clock);
        Host::start(store, git, OnThisThread, Box::new(NoRuntimes), &machine).unwrap()
    };
    let git = GitWorkspaces::new().with_faults(faults);
    let host = start(git.clone());
    let wanted = Wanted {
        environment: "e".to_owned(),
        repository: told("REPOSITORY"),
        slug: "b".to_owned(),
        branch: "b".to_owned(),
        start: None,
        root: told("ROOT"),
    };
    // Judged by the one who started it.
    let _came = act(&host, &git, what, &wanted, &told("ID"), &|| start(GitWorkspaces::new()));
}

/// Lock files in a git directory; those of Freehold are files that stay.
fn find_locks(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(folder) = todo.pop() {
        for path in entries(&folder) {
            if std::fs::symlink_metadata(&path).unwrap().is_dir() {
                if path.file_name() != Some("freehold".as_ref()) {
                    todo.push(path);
                }
            } else if path.extension() == Some("lock".as_ref()) {
                found.push(path);
            }
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    let done = Program::new("cp").arg("-a").arg(from.join(".")).arg(to).status().unwrap();
    assert!(done.success());
}
