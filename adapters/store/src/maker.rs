//! Making worktrees by attempts (W-1..W-7), restoring salvage, and finding the places of rows.

use std::path::Path;

use freehold_kernel::{
    Attempt, AttemptCommand, AttemptId, AttemptState, Command, Found, Guard, HostId, Id, Key, Kind,
    Materialised, OperatorCommand, RemovalId, RemovalOutcome, RepoId, RepoStatus, RootId, RowKey,
    SalvageState, TableId, Token,
};

use crate::host::{Drive, Host, HostError, Who, fresh};
use crate::names::{NameError, id_of, uuid_text};
use crate::store::{Read, Rows, Store};
use crate::submission::Composer;
use crate::workspaces::{Inspection, Place, Plan, Restored, RootPlace, WorkspaceError, Workspaces};

/// A worktree to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// For this environment.
    pub environment: String,
    /// Of this repository.
    pub repository: String,
    /// In this slot.
    pub slug: String,
    /// On this branch; made if it is not there. For a recorded worktree, its recorded one.
    pub branch: String,
    /// A new branch starts here; none is the repository's head.
    pub start: Option<String>,
    /// In this root.
    pub root: String,
}

/// A worktree that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its row.
    pub repo: String,
    /// The attempt.
    pub attempt: String,
    /// Where it is.
    pub place: Place,
}

/// Called with a worktree that is made and not yet owned, under its path lock.
pub(crate) type Fill<'a, L> = &'a mut dyn FnMut(&L, &Place) -> Result<(), HostError>;

impl<S: Store, W: Workspaces, D: Drive> Host<S, W, D> {
    /// Registers a managed root that this machine serves, making its folder (D-18).
    ///
    /// # Errors
    /// If the folder cannot be made or is another store's.
    pub fn register_root(&self, who: &Who, path: &Path) -> Result<String, HostError> {
        // A root that is known is looked at and never made again: a folder that is away (an
        // unmounted disk) must not be taken for an empty one (D-18).
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        for root in self.roots()? {
            if root.path == real || root.path == path {
                self.workspaces.check_root(&root)?;
                return Ok(root.name);
            }
        }
        let store = self.drive.wait(self.store.id())?;
        // The same folder on the same machine is the same root: derived, not drawn.
        let name = format!("{}\0{}\0{}", store, self.machine(), path.display());
        let id = RootId(freehold_kernel::derive(id_of(Kind::RootId, &name), 0));
        let wanted = RootPlace {
            id,
            name: uuid_text(id.0),
            path: path.to_owned(),
            marker: format!("freehold root {} of store {store}\n", uuid_text(id.0)),
            store,
        };
        let real = self.workspaces.make_root(&wanted)?;
        let text = path_text(&real.path)?;
        let known = self.read(&[Read::by(TableId::ManagedRoots, "path", &[&text])])?;
        if let Some(root) = known.view.managed_roots.iter().next() {
            return Ok(uuid_text(root.id.0));
        }
        let machine = self.machine().to_owned();
        self.ask(who, None, |c| {
            c.content(TableId::ManagedRoots, id.0, "marker", &real.marker);
            let host: HostId = c.id(&machine)?;
            Ok(Command::Operator(OperatorCommand::RegisterRoot {
                root: id,
                host,
                path: c.text(&text)?,
            }))
        })?;
        Ok(uuid_text(id.0))
    }

    /// Makes a worktree for a slot, or makes a recorded one again (W-7). If a lifecycle operation
    /// won, what was made is undone and the error says so.
    ///
    /// # Errors
    /// The refusal, the physical failure, or [`HostError::Undone`].
    pub fn make_worktree(&self, who: &Who, wanted: &Wanted) -> Result<Made, HostError> {
        self.make_worktree_between(who, wanted, &mut |_| {})
    }

    /// The same, with `between` called after each durable or physical step, named: for tests and
    /// for the tour, which let other things happen there.
    ///
    /// # Errors
    /// As [`Host::make_worktree`].
    pub fn make_worktree_between(
        &self,
        who: &Who,
        wanted: &Wanted,
        between: &mut dyn FnMut(&'static str),
    ) -> Result<Made, HostError> {
        self.make_filled(who, wanted, &mut |_, _| Ok(()), between)
    }

    /// The same, with `fill` called once the checkout is there and before anybody owns it: what
    /// it puts in comes with the worktree or not at all (W-34).
    pub(crate) fn make_filled(
        &self,
        who: &Who,
        wanted: &Wanted,
        fill: Fill<'_, W::Lock>,
        between: &mut dyn FnMut(&'static str),
    ) -> Result<Made, HostError> {
        let (attempt, token) = (AttemptId(fresh()), Token(fresh()));
        let root = self.root(&wanted.root)?;
        let mut place = self.new_place(&root, wanted, token);
        self.workspaces.check_root(&root)?;
        let plan = self.workspaces.plan(&place, wanted.start.as_deref())?;
        // A linked worktree may be removed long before what is made from it: what is recorded is
        // where the repository itself is. A host that has names of its own finds it by those.
        let mut wanted = wanted.clone();
        if let Some(lasting) = &plan.lasting
            && Path::new(&wanted.repository) == place.repository
        {
            wanted.repository = path_text(lasting)?;
            place.repository.clone_from(lasting);
        }
        let wanted = &wanted;
        place.branch_created = !plan.branch_existed;
        place.start_commit.clone_from(&plan.start_commit);
        let recorded = self.recorded_slot(wanted)?;
        let repo = recorded.unwrap_or(RepoId(fresh()));
        if let Err(error) = self.begin(who, wanted, &place, &plan, attempt, token, repo) {
            // The reply may be lost and the attempt recorded all the same: it is given up then.
            return match error {
                HostError::Store(_) => {
                    let lock = self.workspaces.lock(&place).ok();
                    let held = lock.as_ref().map(|lock| (lock, &place));
                    Err(self.gave_up(who, attempt, token, held, error))
                }
                other => Err(other),
            };
        }
        between("intended");
        let lock = match self.workspaces.lock(&place) {
            Ok(lock) => lock,
            Err(error) => return Err(self.gave_up(who, attempt, token, None, error.into())),
        };
        // W-5: the token is checked under the path lock, before anything is made. A maker that was
        // slower than its lease may find that recovery has undone the attempt already.
        let still =
            self.ask(who, None, |_| Ok(Command::Attempt(AttemptCommand::Renew { attempt, token })));
        if let Err(error) = still {
            return Err(self.gave_up(who, attempt, token, Some((&lock, &place)), error));
        }
        let mut pulse = self.attempt_pulse(attempt, token);
        if let Err(error) = self.workspaces.make(&lock, &place, &plan, &mut pulse) {
            return Err(self.gave_up(who, attempt, token, Some((&lock, &place)), error.into()));
        }
        between("made");
        if let Err(error) = fill(&lock, &place) {
            return Err(self.gave_up(who, attempt, token, Some((&lock, &place)), error));
        }
        between("filled");
        self.own_it(who, attempt, token, (&lock, &place), between)?;
        Ok(Made { repo: uuid_text(repo.0), attempt: uuid_text(attempt.0), place })
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one command, one caller")]
    fn begin(
        &self,
        who: &Who,
        wanted: &Wanted,
        place: &Place,
        plan: &Plan,
        attempt: AttemptId,
        token: Token,
        repo: RepoId,
    ) -> Result<(), HostError> {
        let path = path_text(&place.path)?;
        let instance = self.instance;
        self.ask(who, None, |c| {
            Ok(Command::Attempt(AttemptCommand::Begin {
                attempt,
                token,
                environment: c.id(&wanted.environment)?,
                repo,
                repository: c.text(&wanted.repository)?,
                slug: c.text(&wanted.slug)?,
                root: place.root.id,
                path: c.text(&path)?,
                branch: c.text(&wanted.branch)?,
                worktree: c.text(&place.stamp)?,
                branch_existed: plan.branch_existed,
                start_commit: c.text(&plan.start_commit)?,
                instance,
            }))
        })?;
        Ok(())
    }

    /// The attempt failed: it is undone, now if its row lets us, else by recovery. Compensation
    /// outlives the request (W-4).
    pub(crate) fn gave_up(
        &self,
        who: &Who,
        attempt: AttemptId,
        token: Token,
        held: Option<(&W::Lock, &Place)>,
        error: HostError,
    ) -> HostError {
        let given_up = self
            .ask(who, None, |_| Ok(Command::Attempt(AttemptCommand::GiveUp { attempt, token })));
        let lost = error.guard() == Some(Guard::AttemptToken)
            || matches!(&given_up, Err(e) if e.guard() == Some(Guard::AttemptToken));
        if (given_up.is_ok() || lost)
            && let Some((lock, place)) = held
            && self.compensate(attempt, lock, place).is_ok()
            && lost
        {
            // The barrier won while the worktree was being made: say what took the task.
            return HostError::Undone { guard: self.what_took(attempt) };
        }
        error
    }

    /// The guard that tells best why an attempt was taken from its maker.
    fn what_took(&self, attempt: AttemptId) -> Guard {
        let text = uuid_text(attempt.0);
        let owner = || -> Result<_, HostError> {
            let mut rows = self.read(&[Read::by(TableId::Attempts, "id", &[&text])])?;
            let tasks = rows.texts(rows.view.attempts.iter().map(|a| a.task_id))?;
            self.read_on(&mut rows, vec![Read::among(TableId::Tasks, "id", tasks)])?;
            Ok(rows.view.tasks.iter().next().map(|t| t.lifecycle))
        };
        let Ok(owner) = owner() else { return Guard::AttemptToken };
        match owner {
            Some(freehold_kernel::TaskLifecycle::Archived) => Guard::TaskActive,
            Some(freehold_kernel::TaskLifecycle::Active) => Guard::AttemptToken,
            None => Guard::TaskNotDeleted,
        }
    }

    /// Undoes an attempt of this instance whose path lock is held (W-4). The token is read from
    /// the row: a mutation may have given it a new one (B-5).
    pub(crate) fn compensate(
        &self,
        attempt: AttemptId,
        lock: &W::Lock,
        place: &Place,
    ) -> Result<(), HostError> {
        let text = uuid_text(attempt.0);
        let rows = self.read(&[
            Read::by(TableId::Attempts, "id", &[&text]),
            Read::by(TableId::Removals, "authority_id", &[&text]),
        ])?;
        let Some(row) = rows.view.attempts.id(attempt.0).copied() else { return Ok(()) };
        if row.state != AttemptState::Compensating || row.instance_id != self.instance {
            return Ok(());
        }
        if let Some(removal) = rows.view.removals.iter().find(|r| r.is_unsettled()) {
            return self.resume_removal(removal, lock, place, None);
        }
        let mut pulse = self.attempt_pulse(attempt, row.token);
        let inspection = self.workspaces.inspect(place, &mut pulse);
        drop(pulse);
        let evidence = inspection.evidence;
        if evidence.found == Found::InTrash
            && let Some(kept) = self.restoring(&row)?
        {
            self.workspaces.trash_again(lock, place, &kept)?;
        }
        let instance = self.instance;
        let permitted = self.ask(&Who::system(), None, |c| {
            c.know(&rows.names);
            learn_head(c, &inspection)?;
            Ok(Command::Attempt(AttemptCommand::Compensate {
                attempt,
                token: row.token,
                removal: RemovalId(fresh()),
                removal_token: Token(fresh()),
                instance,
                evidence,
            }))
        })?;
        match permitted.warrant {
            Some(warrant) => self.take_steps(warrant, lock, place, None),
            None => Ok(()),
        }
    }

    /// Makes the recorded worktree of a row again on its branch (W-7). If the branch is gone, on a
    /// new one of its name from the last head that was seen; if that commit is gone too, this is
    /// refused, and [`Host::make_worktree`] with a start of the caller's choice makes it.
    ///
    /// # Errors
    /// As [`Host::make_worktree`].
    pub fn recreate(&self, who: &Who, repo: &str) -> Result<Made, HostError> {
        let rows = self.read(&[
            Read::by(TableId::Repos, "id", &[repo]),
            Read::by(TableId::Removals, "repo_id", &[repo]),
            Read::all(TableId::ManagedRoots),
        ])?;
        let Some(row) = rows.view.repos.iter().next().copied() else {
            return Err(not_there("repository row", repo, "list the task's repositories"));
        };
        let wanted = self.wanted_again(&rows, &row)?;
        self.make_worktree(who, &wanted)
    }

    /// What makes the worktree of a row again, out of the row and its removals.
    pub(crate) fn wanted_again(
        &self,
        rows: &Rows,
        row: &freehold_kernel::Repo,
    ) -> Result<Wanted, HostError> {
        let text = |kind, id: Option<u128>| -> Result<String, HostError> {
            Ok(id.map(|id| rows.names.text(kind, id)).transpose()?.unwrap_or_default())
        };
        // If its branch was deleted meanwhile, it begins where the last removal saw it, not where
        // it once began: what was committed since is not left behind in silence.
        let last = rows
            .view
            .removals
            .iter()
            .filter(|r| r.repo_id == Some(row.id))
            .filter(|r| r.head.is_some() && r.outcome != Some(RemovalOutcome::Returned))
            .max_by_key(|r| (r.created_at, r.id))
            .and_then(|r| r.head);
        let start = last.or(row.start_commit);
        Ok(Wanted {
            environment: rows.names.text(Kind::EnvironmentId, row.task_environment_id.0)?,
            repository: rows.names.text(Kind::RepositoryId, row.repository_id.0)?,
            slug: rows.names.text(Kind::Slug, row.branch_slug.0)?,
            branch: text(Kind::BranchId, row.worktree_branch.map(|b| b.0))?,
            start: start.map(|c| rows.names.text(Kind::CommitId, c.0)).transpose()?,
            root: text(Kind::RootId, row.root_id.map(|r| r.0))?,
        })
    }

    /// Puts a salvage entry back into the worktree of its row, which must be there and clean.
    ///
    /// # Errors
    /// If there is no such entry or row, or the physical side refuses.
    pub fn restore(&self, who: &Who, salvage: &str) -> Result<Restored, HostError> {
        self.restore_into(who, salvage, None)
    }

    /// The same, into the worktree of another repository row: for what a reset or a deleted task
    /// left in salvage (W-34).
    ///
    /// # Errors
    /// As [`Host::restore`].
    pub fn restore_into(
        &self,
        who: &Who,
        salvage: &str,
        into: Option<&str>,
    ) -> Result<Restored, HostError> {
        let mut rows = self.read(&[
            Read::by(TableId::Salvage, "id", &[salvage]),
            Read::all(TableId::ManagedRoots),
        ])?;
        match into {
            Some(repo) => {
                self.read_on(&mut rows, vec![Read::by(TableId::Repos, "id", &[repo])])?;
            }
            None => {
                let repos = rows.texts(rows.view.salvage.iter().filter_map(|s| s.repo_id))?;
                self.read_on(&mut rows, vec![Read::among(TableId::Repos, "id", repos)])?;
            }
        }
        let Some(entry) = rows.view.salvage.iter().next().copied() else {
            return Err(not_there("salvage entry", salvage, "list the salvage entries"));
        };
        if entry.state == SalvageState::Expired {
            return Err(not_there("salvage entry", salvage, "it has expired"));
        }
        let repo = rows.view.repos.iter().next().copied();
        let Some(repo) = repo.filter(|r| r.materialised == Materialised::Yes) else {
            return Err(not_there(
                "worktree of salvage entry",
                salvage,
                "make the worktree again first, or name another one to restore into",
            ));
        };
        let key = RowKey { table: TableId::Salvage, key: Key::of(entry.id.0) };
        let reference = rows
            .contents
            .get(&key)
            .and_then(|c| c.get("ref_name"))
            .cloned()
            .flatten()
            .unwrap_or_default();
        let place = self.place_of_repo(&rows, &repo)?;
        // The path lock first: no removal begins under it. Then the kernel says whether this may
        // be done here and now, and only then is anything written.
        let lock = self.workspaces.lock(&place)?;
        self.ask(who, None, |_| {
            Ok(Command::Operator(OperatorCommand::AdmitRestore {
                salvage: entry.id,
                repo: repo.id,
            }))
        })?;
        self.workspaces.verify(&place)?;
        let restored = self.workspaces.restore(&lock, &place, &reference)?;
        self.ask(who, None, |_| {
            Ok(Command::Operator(OperatorCommand::MarkRestored { salvage: entry.id }))
        })?;
        Ok(restored)
    }

    /// The places of a task's worktrees that are on the disk and managed.
    ///
    /// # Errors
    /// The store's failure.
    pub fn places_of(&self, task: &str) -> Result<Vec<Place>, HostError> {
        let mut rows = self.read(&[
            Read::by(TableId::Environments, "task_id", &[task]),
            Read::all(TableId::ManagedRoots),
        ])?;
        let environments = rows.texts(rows.view.environments.iter().map(|e| e.id))?;
        self.read_on(
            &mut rows,
            vec![Read::among(TableId::Repos, "task_environment_id", environments)],
        )?;
        rows.view
            .repos
            .iter()
            .filter(|r| rows.view.environments.id(r.task_environment_id.0).is_some())
            .filter(|r| {
                r.managed && r.materialised == Materialised::Yes && r.status != RepoStatus::Deleted
            })
            .map(|r| self.place_of_repo(&rows, r))
            .collect()
    }

    pub(crate) fn place_of_repo(
        &self,
        rows: &Rows,
        repo: &freehold_kernel::Repo,
    ) -> Result<Place, HostError> {
        self.place(
            rows,
            repo.root_id,
            repo.worktree_path.map(|p| p.0),
            repo.repository_id.0,
            repo.worktree_branch.map(|b| b.0),
            repo.branch_created,
            repo.start_commit.map(|c| c.0),
            repo.worktree_id.map(|w| w.0),
        )
    }

    pub(crate) fn place_of_attempt(
        &self,
        rows: &Rows,
        attempt: &Attempt,
    ) -> Result<Place, HostError> {
        self.place(
            rows,
            Some(attempt.root_id),
            Some(attempt.path.0),
            attempt.repository_id.0,
            Some(attempt.branch.0),
            !attempt.branch_existed,
            Some(attempt.start_commit.0),
            Some(attempt.worktree_id.0),
        )
    }

    /// A place out of the texts behind a row's ids.
    #[expect(clippy::too_many_arguments, reason = "the columns that three kinds of row share")]
    pub(crate) fn place(
        &self,
        rows: &Rows,
        root: Option<RootId>,
        path: Option<u128>,
        repository: u128,
        branch: Option<u128>,
        branch_created: bool,
        start_commit: Option<u128>,
        stamp: Option<u128>,
    ) -> Result<Place, HostError> {
        let text = |kind: Kind, id: Option<u128>| -> Result<String, HostError> {
            Ok(id.map(|id| rows.names.text(kind, id)).transpose()?.unwrap_or_default())
        };
        let Some(root) = root else {
            return Err(not_there("root", "", "register the managed root"));
        };
        Ok(Place {
            root: self.root_place(rows, root)?,
            path: text(Kind::PathId, path)?.into(),
            repository: self.repository(&text(Kind::RepositoryId, Some(repository))?),
            branch: text(Kind::BranchId, branch)?,
            branch_created,
            start_commit: text(Kind::CommitId, start_commit)?,
            stamp: text(Kind::WorktreeId, stamp)?,
        })
    }

    pub(crate) fn root_place(&self, rows: &Rows, id: RootId) -> Result<RootPlace, HostError> {
        let Some(row) = rows.view.managed_roots.id(id.0) else {
            return Err(not_there("root", &uuid_text(id.0), "register it"));
        };
        let key = RowKey { table: TableId::ManagedRoots, key: Key::of(id.0) };
        let marker = rows.contents.get(&key).and_then(|c| c.get("marker")).cloned().flatten();
        Ok(RootPlace {
            id,
            name: uuid_text(id.0),
            path: rows.names.text(Kind::PathId, row.path.0)?.into(),
            marker: marker.unwrap_or_default(),
            store: self.drive.wait(self.store.id())?,
        })
    }

    /// Every managed root.
    ///
    /// # Errors
    /// The store's failure.
    pub fn roots(&self) -> Result<Vec<RootPlace>, HostError> {
        let rows = self.read(&[Read::all(TableId::ManagedRoots)])?;
        rows.view.managed_roots.iter().map(|r| self.root_place(&rows, r.id)).collect()
    }

    fn root(&self, root: &str) -> Result<RootPlace, HostError> {
        let rows = self.read(&[Read::by(TableId::ManagedRoots, "id", &[root])])?;
        match rows.view.managed_roots.iter().next() {
            Some(row) => self.root_place(&rows, row.id),
            None => Err(not_there("root", root, "register it")),
        }
    }

    /// W-1: the path contains a part of the token, so it does not exist yet.
    fn new_place(&self, root: &RootPlace, wanted: &Wanted, token: Token) -> Place {
        let token = uuid_text(token.0);
        let folder = short(&wanted.environment);
        let name = format!("{}-{}", short(&wanted.slug), &token[24..]);
        Place {
            root: root.clone(),
            path: root.path.join(folder).join(name),
            repository: self.repository(&wanted.repository),
            branch: wanted.branch.clone(),
            branch_created: false,
            start_commit: String::new(),
            stamp: format!("freehold:{}:{}:{token}", root.store, root.name),
        }
    }

    /// The row of the slot, if its worktree is recorded and not on the disk, or failed (W-6).
    fn recorded_slot(&self, wanted: &Wanted) -> Result<Option<RepoId>, HostError> {
        let rows =
            self.read(&[Read::by(TableId::Repos, "task_environment_id", &[&wanted.environment])])?;
        let repository = id_of(Kind::RepositoryId, &wanted.repository);
        let slug = id_of(Kind::Slug, &wanted.slug);
        Ok(rows
            .view
            .repos
            .iter()
            .find(|r| {
                r.repository_id.bits() == repository
                    && r.branch_slug.bits() == slug
                    && r.status != RepoStatus::Deleted
            })
            .map(|r| r.id))
    }

    /// Renews an attempt while it is made.
    pub(crate) fn attempt_pulse(
        &self,
        attempt: AttemptId,
        token: Token,
    ) -> impl FnMut() -> bool + '_ {
        self.paced(move || {
            self.ask(&Who::system(), None, |_| {
                Ok(Command::Attempt(AttemptCommand::Renew { attempt, token }))
            })
            .is_ok()
        })
    }
}

/// The head's text, so that the row can be written.
pub(crate) fn learn_head(
    composer: &mut Composer,
    inspection: &Inspection,
) -> Result<(), NameError> {
    if !inspection.head.is_empty() {
        composer.text::<freehold_kernel::CommitId>(&inspection.head)?;
    }
    Ok(())
}

/// A folder name out of an id: letters, digits and dashes, and short.
fn short(text: &str) -> String {
    let mut name: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' })
        .take(40)
        .collect();
    if name.is_empty() || name.starts_with('-') {
        name.insert(0, 'w');
    }
    // Two ids that differ only in what was replaced stay apart.
    if name != text {
        name.push_str(&format!("-{:08x}", id_of(Kind::Slug, text) as u32));
    }
    name
}

pub(crate) fn path_text(path: &Path) -> Result<String, HostError> {
    match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(HostError::Workspace(WorkspaceError {
            reason: freehold_kernel::Reason::OutsideRoot,
            path: path.to_owned(),
            detail: "the path of a managed root must be valid UTF-8".to_owned(),
            help: "choose another folder for the root".to_owned(),
        })),
    }
}

pub(crate) fn not_there(what: &'static str, id: &str, help: &'static str) -> HostError {
    HostError::NotThere { what, id: id.to_owned(), help }
}
