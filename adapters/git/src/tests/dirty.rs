//! Every kind of unsaved work (W-33), one case each.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use freehold_kernel::Unsaved;
use freehold_store::workspaces::Place;

use super::fixture::{Fixture, git, git_fails, repository};

/// One way to have unsaved work, and what it is.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) dirty: fn(&Fixture, &Place),
    pub(super) kinds: Unsaved,
    /// A word that the details must have.
    pub(super) says: &'static str,
}

fn write(place: &Place, name: &str, text: &str) {
    let path = place.path.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn commit(dir: &Path, message: &str) {
    git(dir, &["commit", "--allow-empty", "--quiet", "-m", message]);
}

/// Two commits that change the same line, the second on the branch `other`.
fn diverge(f: &Fixture, place: &Place) {
    git(&f.main, &["branch", "other"]);
    write(place, "a.txt", "ours\n");
    git(&place.path, &["commit", "--quiet", "-am", "ours"]);
    let scratch = f.dir.path().join("scratch");
    git(&f.main, &["worktree", "add", "--quiet", scratch.to_str().unwrap(), "other"]);
    fs::write(scratch.join("a.txt"), "theirs\n").unwrap();
    git(&scratch, &["commit", "--quiet", "-am", "theirs"]);
}

pub(super) fn with_submodule(f: &Fixture, place: &Place) {
    let source = f.dir.path().join("sub-source");
    repository(&source);
    git(&place.path, &["submodule", "--quiet", "add", source.to_str().unwrap(), "sub"]);
    git(&place.path, &["commit", "--quiet", "-m", "submodule"]);
}

/// The table.
pub(super) const CASES: &[Case] = &[
    Case { name: "clean", dirty: |_, _| {}, kinds: Unsaved::NONE, says: "" },
    Case {
        name: "modified",
        dirty: |_, p| write(p, "a.txt", "changed"),
        kinds: Unsaved::TRACKED,
        says: "changed (.M): \"a.txt\"",
    },
    Case {
        name: "staged",
        dirty: |_, p| {
            write(p, "a.txt", "changed");
            git(&p.path, &["add", "a.txt"]);
        },
        kinds: Unsaved::TRACKED,
        says: "changed (M.)",
    },
    Case {
        name: "deleted",
        dirty: |_, p| fs::remove_file(p.path.join("src/b.txt")).unwrap(),
        kinds: Unsaved::TRACKED,
        says: "src/b.txt",
    },
    Case {
        name: "renamed",
        dirty: |_, p| {
            git(&p.path, &["mv", "a.txt", "z z.txt"]);
        },
        kinds: Unsaved::TRACKED,
        says: "z z.txt",
    },
    Case {
        name: "mode only, with core.fileMode off",
        dirty: |_, p| {
            git(&p.path, &["config", "core.fileMode", "false"]);
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(p.path.join("a.txt"), mode).unwrap();
        },
        kinds: Unsaved::TRACKED,
        says: "a.txt",
    },
    Case {
        name: "untracked",
        dirty: |_, p| write(p, "TESTE.md", "x"),
        kinds: Unsaved::UNTRACKED,
        says: "untracked: \"TESTE.md\"",
    },
    Case {
        name: "untracked, with showUntrackedFiles off",
        dirty: |_, p| {
            git(&p.path, &["config", "status.showUntrackedFiles", "no"]);
            write(p, "new/deep", "x");
        },
        kinds: Unsaved::UNTRACKED,
        says: "new/deep",
    },
    Case {
        name: "a name with a line break",
        dirty: |_, p| write(p, "x\nuntracked: y", "x"),
        kinds: Unsaved::UNTRACKED,
        says: "\"x\\nuntracked: y\"",
    },
    Case {
        name: "ignored file (F02)",
        dirty: |_, p| write(p, ".env", "secret"),
        kinds: Unsaved::IGNORED,
        says: "ignored: \".env\"",
    },
    Case {
        name: "ignored folder",
        dirty: |_, p| write(p, "target/out", "x"),
        kinds: Unsaved::IGNORED,
        says: "target/",
    },
    Case {
        name: "ignored by the repository's own exclude file",
        dirty: |f, p| {
            fs::create_dir_all(f.main.join(".git/info")).unwrap();
            fs::write(f.main.join(".git/info/exclude"), "*.log\n").unwrap();
            write(p, "x.log", "x");
        },
        kinds: Unsaved::IGNORED,
        says: "x.log",
    },
    Case {
        name: "merge",
        dirty: |f, p| {
            diverge(f, p);
            git_fails(&p.path, &["merge", "other"]);
        },
        kinds: Unsaved::TRACKED.with(Unsaved::OPERATION),
        says: "a merge is in progress",
    },
    Case {
        name: "merge without conflict, not committed",
        dirty: |f, p| {
            git(&f.main, &["branch", "other"]);
            commit(&p.path, "ours");
            let tree = git(&p.path, &["rev-parse", "HEAD^{tree}"]);
            let theirs = git(&p.path, &["commit-tree", "-p", "other", "-m", "t", &tree]);
            git(&p.path, &["merge", "--quiet", "--no-commit", "--no-ff", &theirs]);
        },
        kinds: Unsaved::OPERATION,
        says: "MERGE_HEAD",
    },
    Case {
        name: "cherry-pick",
        dirty: |f, p| {
            diverge(f, p);
            git_fails(&p.path, &["cherry-pick", "other"]);
        },
        kinds: Unsaved::TRACKED.with(Unsaved::OPERATION),
        says: "a cherry-pick",
    },
    Case {
        name: "revert",
        dirty: |_, p| {
            write(p, "a.txt", "2");
            git(&p.path, &["commit", "--quiet", "-am", "2"]);
            write(p, "a.txt", "3");
            git(&p.path, &["commit", "--quiet", "-am", "3"]);
            git_fails(&p.path, &["revert", "HEAD~1"]);
        },
        kinds: Unsaved::TRACKED.with(Unsaved::OPERATION),
        says: "a revert",
    },
    Case {
        name: "rebase",
        dirty: |f, p| {
            diverge(f, p);
            git_fails(&p.path, &["rebase", "other"]);
        },
        kinds: Unsaved::TRACKED.with(Unsaved::OPERATION),
        says: "a rebase",
    },
    Case {
        name: "bisect",
        dirty: |_, p| {
            for n in 0..3 {
                commit(&p.path, &n.to_string());
            }
            git(&p.path, &["bisect", "start", "HEAD", "HEAD~3"]);
        },
        kinds: Unsaved::OPERATION.with(Unsaved::PRIVATE),
        says: "a bisect",
    },
    Case {
        name: "detached with a commit (F08)",
        dirty: |_, p| {
            git(&p.path, &["checkout", "--quiet", "--detach"]);
            commit(&p.path, "only here");
        },
        kinds: Unsaved::COMMITS,
        says: "1 commit(s) that nothing else reaches",
    },
    Case {
        name: "detached on a commit of a branch",
        dirty: |_, p| {
            git(&p.path, &["checkout", "--quiet", "--detach"]);
        },
        kinds: Unsaved::NONE,
        says: "",
    },
    Case {
        name: "commits on the branch, which stays",
        dirty: |_, p| commit(&p.path, "on the branch"),
        kinds: Unsaved::NONE,
        says: "",
    },
    Case {
        name: "assume-unchanged",
        dirty: |_, p| {
            git(&p.path, &["update-index", "--assume-unchanged", "a.txt"]);
            write(p, "a.txt", "hidden");
        },
        kinds: Unsaved::HIDDEN,
        says: "hidden from status: \"a.txt\"",
    },
    Case {
        name: "skip-worktree",
        dirty: |_, p| {
            git(&p.path, &["update-index", "--skip-worktree", "a.txt"]);
            write(p, "a.txt", "hidden");
        },
        kinds: Unsaved::HIDDEN,
        says: "hidden from status",
    },
    Case {
        name: "sparse checkout: its own files, nothing hidden",
        dirty: |_, p| {
            git(&p.path, &["sparse-checkout", "set", "--no-cone", "/a.txt"]);
        },
        kinds: Unsaved::PRIVATE,
        says: "info/sparse-checkout",
    },
    Case {
        name: "a ref of its own",
        dirty: |_, p| {
            git(&p.path, &["update-ref", "refs/worktree/mine", "HEAD"]);
        },
        kinds: Unsaved::PRIVATE,
        says: "refs/worktree/mine",
    },
    Case {
        name: "configuration of its own",
        dirty: |_, p| {
            git(&p.path, &["config", "extensions.worktreeConfig", "true"]);
            git(&p.path, &["config", "--worktree", "a.b", "c"]);
        },
        kinds: Unsaved::PRIVATE,
        says: "state of its own: \"config.worktree\"",
    },
    Case {
        name: "a file of another tool in the administration directory",
        dirty: |f, p| fs::write(f.admin(p).join("tool-state"), "x").unwrap(),
        kinds: Unsaved::PRIVATE,
        says: "tool-state",
    },
    Case {
        name: "a filter that makes every content look the same",
        dirty: |_, p| {
            fs::create_dir_all(p.repository.join(".git/info")).unwrap();
            fs::write(p.repository.join(".git/info/attributes"), "a.txt filter=same\n").unwrap();
            git(&p.path, &["config", "filter.same.clean", "echo one"]);
            // As long as before: git takes another size for a change without asking the filter.
            write(p, "a.txt", "two\n");
        },
        kinds: Unsaved::TRACKED,
        says: "a.txt",
    },
    Case {
        name: "a filter whose name has an equals sign and bytes that are no text",
        dirty: |_, p| {
            use std::os::unix::ffi::OsStrExt;
            let info = p.repository.join(".git/info");
            fs::create_dir_all(&info).unwrap();
            fs::write(info.join("attributes"), b"a.txt filter=s=\xff\n").unwrap();
            let config = p.repository.join(".git/config");
            let mut text = fs::read(&config).unwrap();
            text.extend_from_slice(b"[filter \"s=\xff\"]\n\tclean = echo one\n");
            fs::write(&config, text).unwrap();
            let name = std::ffi::OsStr::from_bytes(b"filter.s=\xff.clean");
            let mut git = std::process::Command::new("git");
            git.arg("config").arg(name).current_dir(&p.repository);
            assert!(git.output().unwrap().status.success(), "git does not know the filter");
            write(p, "a.txt", "two\n");
        },
        kinds: Unsaved::TRACKED,
        says: "a.txt",
    },
    Case { name: "submodule, clean (F20)", dirty: with_submodule, kinds: Unsaved::NONE, says: "" },
    Case {
        name: "submodule, never initialised",
        dirty: |f, p| {
            with_submodule(f, p);
            git(&p.path, &["submodule", "--quiet", "deinit", "-f", "sub"]);
        },
        kinds: Unsaved::NONE,
        says: "",
    },
    Case {
        name: "submodule, never initialised, with a file",
        dirty: |f, p| {
            with_submodule(f, p);
            git(&p.path, &["submodule", "--quiet", "deinit", "-f", "sub"]);
            write(p, "sub/lost", "x");
        },
        kinds: Unsaved::SUBMODULE,
        says: "never initialised",
    },
    Case {
        name: "submodule with an untracked file",
        dirty: |f, p| {
            with_submodule(f, p);
            write(p, "sub/new", "x");
        },
        kinds: Unsaved::SUBMODULE,
        says: "submodule \"sub\": untracked: \"new\"",
    },
    Case {
        name: "submodule with an ignored file",
        dirty: |f, p| {
            with_submodule(f, p);
            write(p, "sub/.env", "x");
        },
        kinds: Unsaved::SUBMODULE,
        says: "submodule \"sub\": ignored",
    },
    Case {
        name: "submodule with a change, ignored by configuration",
        dirty: |f, p| {
            with_submodule(f, p);
            git(&p.path, &["config", "submodule.sub.ignore", "all"]);
            write(p, "sub/a.txt", "x");
        },
        kinds: Unsaved::SUBMODULE,
        says: "submodule \"sub\": changed",
    },
    Case {
        name: "submodule with a commit of its own",
        dirty: |f, p| {
            with_submodule(f, p);
            commit(&p.path.join("sub"), "only here");
        },
        kinds: Unsaved::SUBMODULE.with(Unsaved::TRACKED),
        says: "submodule \"sub\": 1 commit(s)",
    },
    Case {
        name: "submodule with a stash",
        dirty: |f, p| {
            with_submodule(f, p);
            write(p, "sub/a.txt", "x");
            git(&p.path.join("sub"), &["stash", "--quiet"]);
        },
        kinds: Unsaved::SUBMODULE,
        says: "commit(s) that nothing else reaches",
    },
    Case {
        name: "submodule whose repository is in the tree",
        dirty: |f, p| {
            with_submodule(f, p);
            let link = fs::read_to_string(p.path.join("sub/.git")).unwrap();
            let real = p.path.join("sub").join(link.trim().strip_prefix("gitdir: ").unwrap());
            let real = fs::canonicalize(real).unwrap();
            fs::remove_file(p.path.join("sub/.git")).unwrap();
            fs::rename(real, p.path.join("sub/.git")).unwrap();
            let config = p.path.join("sub/.git/config");
            git(
                &p.path,
                &["config", "--file", config.to_str().unwrap(), "--unset", "core.worktree"],
            );
        },
        kinds: Unsaved::SUBMODULE,
        says: "its repository lies in the worktree itself",
    },
];
