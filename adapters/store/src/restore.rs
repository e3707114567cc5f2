//! What is kept and comes back: salvage into a new or recreated worktree, trash in place (W-34,
//! W-35). Both are makings like any other (W-1): an attempt first, and whatever stops it is
//! adopted or undone by recovery. Nothing is put over a live worktree.

use std::path::PathBuf;

use freehold_kernel::{
    AttemptCommand, AttemptId, AuthorityKind, Command, Kind, Materialised, OperatorCommand, Reply,
    Repo, RepoStatus, Row, Salvage, SalvageState, TableId, Time, Token, Trash, TrashState, Unsaved,
};

use crate::host::{Drive, Host, HostError, Who, fresh};
use crate::maker::{Made, Wanted, not_there};
use crate::names::uuid_text;
use crate::store::{Read, Rows, Store};
use crate::workspaces::{InTrash, Place, Restored, RootPlace, Workspaces};

/// Something that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Its id.
    pub id: String,
    /// Salvage or trash.
    pub what: KeptAs,
    /// The task that it was kept for; none if that is not known.
    pub task: Option<String>,
    /// Its repository row, which may be gone.
    pub repo: Option<String>,
    /// The repository, as the host names it.
    pub repository: String,
    /// The branch of its worktree; empty if that is not known.
    pub branch: String,
    /// The commit that it was taken on, in hex; empty if none.
    pub base: String,
    /// What kinds of unsaved work are in it; for trash, what was in it when it was removed.
    pub contents: Unsaved,
    /// Bytes of unsaved content; none for trash, which nobody has measured.
    pub size: Option<i64>,
    /// Since when.
    pub since: Time,
    /// Until when; none for ever, or until its removal is settled.
    pub until: Option<Time>,
    /// The code of its state (D-20).
    pub state: &'static str,
    /// The root beside or in which it lies, with the machine that serves it.
    pub root: RootPlace,
    /// That machine.
    pub machine: String,
    /// Where the worktree was.
    pub path: PathBuf,
    /// For salvage its ref in the private store; for trash the removal that filled it.
    pub name: String,
}

/// How something is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptAs {
    /// In the private store (W-34).
    Salvage,
    /// The directory itself (W-35).
    Trash,
}

/// Where a salvage entry is to be put.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Into this environment; none is the repository row that it was taken for.
    pub environment: Option<String>,
    /// Into the current environment of this task.
    pub task: Option<String>,
    /// In a worktree on this branch; none is the branch that it was taken on.
    pub branch: Option<String>,
    /// A new branch starts here; none is the commit that the entry was taken on.
    pub start: Option<String>,
}

/// What was put back, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutBack {
    /// The worktree.
    pub made: Made,
    /// What is back in it.
    pub restored: Restored,
}

/// Called after each durable or physical step, with its name: for tests.
type Between<'a> = &'a mut dyn FnMut(&'static str);

impl<S: Store, W: Workspaces, D: Drive> Host<S, W, D> {
    /// Everything that is kept: salvage entries that have not expired, and trash that is not
    /// gone, oldest first.
    ///
    /// # Errors
    /// The store's failure.
    pub fn kept(&self) -> Result<Vec<Kept>, HostError> {
        let store = self.drive.wait(self.store.id())?;
        self.drive.wait(kept(&self.store, &store))
    }

    /// Puts back what has this id: a salvage entry into its target, trash in place.
    ///
    /// # Errors
    /// The refusal; [`HostError::Live`] where a worktree is there already; the physical failure,
    /// after which nothing of it is left but what is kept.
    pub fn put_back(&self, who: &Who, id: &str, target: &Target) -> Result<PutBack, HostError> {
        self.put_back_between(who, id, target, &mut |_| {})
    }

    /// The same, with `between` called after each durable or physical step: for tests.
    ///
    /// # Errors
    /// As [`Host::put_back`].
    pub fn put_back_between(
        &self,
        who: &Who,
        id: &str,
        target: &Target,
        between: Between<'_>,
    ) -> Result<PutBack, HostError> {
        let rows = self.read(&[
            Read::by(TableId::Salvage, "id", &[id]),
            Read::by(TableId::Trash, "id", &[id]),
            Read::all(TableId::ManagedRoots),
        ])?;
        let entry = rows.view.salvage.iter().next().copied();
        let trash = rows.view.trash.iter().next().copied();
        if let Some(entry) = entry {
            return self.put_back_salvage(who, rows, &entry, target, between);
        }
        match trash {
            Some(_) if *target != Target::default() => Err(not_there(
                "target for trash",
                id,
                "trash goes back where it was; put its salvage into another worktree instead",
            )),
            Some(trash) => self.put_back_trash(who, rows, &trash, between),
            None => Err(not_there("salvage entry or trash", id, "list what is kept")),
        }
    }

    fn put_back_salvage(
        &self,
        who: &Who,
        mut rows: Rows,
        entry: &Salvage,
        target: &Target,
        between: Between<'_>,
    ) -> Result<PutBack, HostError> {
        let id = uuid_text(entry.id.0);
        if entry.state == SalvageState::Expired {
            return Err(not_there("salvage entry", &id, "it has expired"));
        }
        let name = text_of(&rows, entry, "ref_name");
        let wanted = self.wanted_for(&mut rows, entry, &id, target)?;
        let mut restored = None;
        let made = self.make_filled(
            who,
            &wanted,
            &mut |lock: &W::Lock, place: &Place| {
                restored = Some(self.workspaces.restore(lock, place, &name)?);
                Ok(())
            },
            between,
        )?;
        self.ask(who, None, |_| {
            Ok(Command::Operator(OperatorCommand::MarkRestored { salvage: entry.id }))
        })?;
        between("marked");
        let none = Restored { entries: 0, contents: Unsaved::NONE, notes: Vec::new() };
        Ok(PutBack { made, restored: restored.unwrap_or(none) })
    }

    /// The worktree that an entry goes into: its own row's, made again, or a new one.
    fn wanted_for(
        &self,
        rows: &mut Rows,
        entry: &Salvage,
        id: &str,
        target: &Target,
    ) -> Result<Wanted, HostError> {
        let own = rows.texts(entry.repo_id)?;
        self.read_on(
            rows,
            vec![
                Read::among(TableId::Repos, "id", own.clone()),
                Read::among(TableId::Removals, "repo_id", own),
            ],
        )?;
        let row = entry.repo_id.and_then(|r| rows.view.repos.id(r.0)).copied();
        let environment = self.environment_of(target)?;
        let Some(environment) = environment else {
            let Some(row) = row.filter(|r| r.status != RepoStatus::Deleted) else {
                return Err(not_there(
                    "repository row of salvage entry",
                    id,
                    "name an environment to put it into a new worktree of",
                ));
            };
            refuse_live(rows, &row, id)?;
            let mut wanted = self.wanted_again(rows, &row)?;
            if target.start.is_some() {
                wanted.start.clone_from(&target.start);
            }
            return Ok(wanted);
        };
        let recorded = self.branch_of(rows, entry)?;
        let branch = match (&target.branch, recorded) {
            (Some(branch), _) => branch.clone(),
            (None, Some(branch)) => branch,
            (None, None) => format!("restored/{id}"),
        };
        let base = entry.base.map(|b| rows.names.text(Kind::CommitId, b.0)).transpose()?;
        Ok(Wanted {
            environment,
            repository: rows.names.text(Kind::RepositoryId, entry.repository_id.0)?,
            slug: branch.clone(),
            branch,
            start: target.start.clone().or(base),
            root: uuid_text(entry.root_id.0),
        })
    }

    /// The branch that an entry was taken on; its repository row may be gone.
    fn branch_of(&self, rows: &mut Rows, entry: &Salvage) -> Result<Option<String>, HostError> {
        let removal = uuid_text(entry.removal_id.0);
        self.read_on(rows, vec![Read::by(TableId::Removals, "id", &[&removal])])?;
        let found = rows.view.removals.id(entry.removal_id.0).copied();
        let resources = rows.texts(found.and_then(|r| r.resource))?;
        let attempts = rows.texts(
            found.filter(|r| r.authority == AuthorityKind::Attempt).map(|r| r.authority_id),
        )?;
        self.read_on(
            rows,
            vec![
                Read::among(TableId::Resources, "id", resources),
                Read::among(TableId::Attempts, "id", attempts),
            ],
        )?;
        let branch = about(rows, entry.removal_id)?.branch;
        Ok((!branch.is_empty()).then_some(branch))
    }

    fn environment_of(&self, target: &Target) -> Result<Option<String>, HostError> {
        if let Some(environment) = &target.environment {
            return Ok(Some(environment.clone()));
        }
        let Some(task) = &target.task else { return Ok(None) };
        let rows = self.read(&[Read::by(TableId::Tasks, "id", &[task])])?;
        let current = rows.view.tasks.iter().next().and_then(|t| t.current_environment_id);
        match current {
            Some(environment) => Ok(Some(rows.names.text(Kind::EnvironmentId, environment.0)?)),
            None => Err(not_there(
                "environment of task",
                task,
                "name a task that has an environment, or an environment",
            )),
        }
    }

    fn put_back_trash(
        &self,
        who: &Who,
        mut rows: Rows,
        trash: &Trash,
        between: Between<'_>,
    ) -> Result<PutBack, HostError> {
        let id = uuid_text(trash.id.0);
        let place = self.place_of_trash(&mut rows, trash)?;
        let kept = self.in_trash(&mut rows, trash)?;
        let repos = rows.texts(trash.repo_id)?;
        self.read_on(&mut rows, vec![Read::among(TableId::Repos, "id", repos)])?;
        let row = trash.repo_id.and_then(|r| rows.view.repos.id(r.0)).copied();
        let Some(row) = row.filter(|r| r.status != RepoStatus::Deleted) else {
            return Err(not_there(
                "repository row of trash",
                &id,
                "put its salvage into a worktree of another environment",
            ));
        };
        refuse_live(&rows, &row, &id)?;
        let (attempt, token) = (AttemptId(fresh()), Token(fresh()));
        // The path lock first: no purge begins under it.
        let lock = self.workspaces.lock(&place)?;
        let instance = self.instance;
        let begun = self.ask(who, None, |c| {
            c.know(&rows.names);
            Ok(Command::Attempt(AttemptCommand::BeginRestore {
                attempt,
                token,
                trash: trash.id,
                environment: row.task_environment_id,
                repo: row.id,
                path: trash.path,
                instance,
            }))
        });
        let held = Some((&lock, &place));
        match begun {
            // The reply may be lost and the attempt recorded all the same: it is given up then.
            Err(error @ HostError::Store(_)) => {
                return Err(self.gave_up(who, attempt, token, held, error));
            }
            begun => begun?,
        };
        between("intended");
        let mut pulse = self.attempt_pulse(attempt, token);
        let restored = match self.workspaces.restore_trash(&lock, &place, &kept, &mut pulse) {
            Ok(restored) => restored,
            Err(error) => return Err(self.gave_up(who, attempt, token, held, error.into())),
        };
        between("restored");
        let made =
            Made { repo: uuid_text(row.id.0), attempt: uuid_text(attempt.0), place: place.clone() };
        self.own_it(who, attempt, token, (&lock, &place), between)?;
        if let Some(entry) = latest(&rows, trash) {
            self.ask(who, None, |_| {
                Ok(Command::Operator(OperatorCommand::MarkRestored { salvage: entry.id }))
            })?;
        }
        between("marked");
        Ok(PutBack { made, restored })
    }

    /// The last two steps of a making: said to be there, and owned (W-3, W-4).
    pub(crate) fn own_it(
        &self,
        who: &Who,
        attempt: AttemptId,
        token: Token,
        (lock, place): (&W::Lock, &Place),
        between: Between<'_>,
    ) -> Result<(), HostError> {
        let materialised = self.ask(who, None, |_| {
            Ok(Command::Attempt(AttemptCommand::Materialised { attempt, token }))
        });
        if let Err(error) = materialised {
            return Err(self.gave_up(who, attempt, token, Some((lock, place)), error));
        }
        between("materialised");
        let persisted = self
            .ask(who, None, |_| Ok(Command::Attempt(AttemptCommand::Persist { attempt, token })));
        match persisted {
            Ok(accepted) => match accepted.reply {
                Reply::Compensate { guard } => {
                    self.compensate(attempt, lock, place)?;
                    between("compensated");
                    Err(HostError::Undone { guard })
                }
                _done => {
                    between("owned");
                    Ok(())
                }
            },
            Err(error) => Err(self.gave_up(who, attempt, token, Some((lock, place)), error)),
        }
    }

    /// What the adapter needs to find kept trash and to make it whole.
    pub(crate) fn in_trash(&self, rows: &mut Rows, trash: &Trash) -> Result<InTrash, HostError> {
        let filler = uuid_text(trash.removal_id.0);
        self.read_on(
            rows,
            vec![
                Read::by(TableId::Removals, "id", &[&filler]),
                Read::by(TableId::Salvage, "removal_id", &[&filler]),
            ],
        )?;
        let head = rows.view.removals.id(trash.removal_id.0).and_then(|r| r.head);
        let head = head.map(|h| rows.names.text(Kind::CommitId, h.0)).transpose()?;
        let salvage = latest(rows, trash).map(|s| text_of(rows, &s, "ref_name"));
        Ok(InTrash { removal: filler, salvage, head: head.unwrap_or_default() })
    }

    /// The trash that an attempt restores, if it is one that does (W-4).
    pub(crate) fn restoring(
        &self,
        attempt: &freehold_kernel::Attempt,
    ) -> Result<Option<InTrash>, HostError> {
        let mut rows = self.read(&[Read::by(TableId::Trash, "state", &["restoring"])])?;
        let trash = rows
            .view
            .trash
            .iter()
            .find(|t| t.worktree_id == Some(attempt.worktree_id) && t.path == attempt.path)
            .copied();
        trash.map(|trash| self.in_trash(&mut rows, &trash)).transpose()
    }
}

/// The latest salvage of the removal that filled a trash: it holds what is in there (W-35).
fn latest(rows: &Rows, trash: &Trash) -> Option<Salvage> {
    rows.view
        .salvage
        .iter()
        .filter(|s| s.removal_id == trash.removal_id && s.state != SalvageState::Expired)
        .max_by_key(|s| (s.made_at, s.id))
        .copied()
}

fn refuse_live(rows: &Rows, row: &Repo, id: &str) -> Result<(), HostError> {
    if row.materialised == Materialised::No {
        return Ok(());
    }
    let path = row.worktree_path.map(|p| rows.names.text(Kind::PathId, p.0)).transpose()?;
    Err(HostError::Live { id: id.to_owned(), path: path.unwrap_or_default().into() })
}

fn text_of(rows: &Rows, row: &Salvage, column: &str) -> String {
    rows.contents
        .get(&row.row_key())
        .and_then(|c| c.get(column))
        .cloned()
        .flatten()
        .unwrap_or_default()
}

/// Everything that a store says is kept, read without an instance: for reports.
///
/// # Errors
/// The store's failure.
pub async fn kept<S: Store>(store: &S, id: &str) -> Result<Vec<Kept>, HostError> {
    let mut rows = store
        .read(&[
            Read::all(TableId::Salvage),
            Read::by(TableId::Trash, "state", &["kept", "restoring", "purging"]),
            Read::all(TableId::ManagedRoots),
            Read::all(TableId::Settings),
        ])
        .await?;
    let removals = rows.texts(
        rows.view
            .salvage
            .iter()
            .map(|s| s.removal_id)
            .chain(rows.view.trash.iter().map(|t| t.removal_id)),
    )?;
    rows.absorb(store.read(&[Read::among(TableId::Removals, "id", removals)]).await?);
    let resources = rows.texts(rows.view.removals.iter().filter_map(|r| r.resource))?;
    let attempts = rows.texts(
        rows.view
            .removals
            .iter()
            .filter(|r| r.authority == AuthorityKind::Attempt)
            .map(|r| r.authority_id),
    )?;
    rows.absorb(
        store
            .read(&[
                Read::among(TableId::Resources, "id", resources),
                Read::among(TableId::Attempts, "id", attempts),
            ])
            .await?,
    );
    let mut all = Vec::new();
    for s in rows.view.salvage.iter().filter(|s| s.state != SalvageState::Expired) {
        all.push(salvage_line(&rows, s, id)?);
    }
    for t in rows.view.trash.iter().filter(|t| t.state != TrashState::Gone) {
        all.push(trash_line(&rows, t, id)?);
    }
    all.sort_by(|a, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
    Ok(all)
}

/// What the removal behind something kept was about.
struct About {
    repository: Option<u128>,
    branch: String,
    path: String,
}

fn about(rows: &Rows, removal: freehold_kernel::RemovalId) -> Result<About, HostError> {
    let Some(removal) = rows.view.removals.id(removal.0) else {
        return Ok(About { repository: None, branch: String::new(), path: String::new() });
    };
    let resource = removal.resource.and_then(|r| rows.view.resources.id(r.0));
    let attempt = rows.view.attempts.id(removal.authority_id.0);
    let repository =
        resource.and_then(|r| r.repository_id).or(attempt.map(|a| a.repository_id)).map(|r| r.0);
    let branch = resource.and_then(|r| r.branch).or(attempt.map(|a| a.branch));
    let branch = branch.map(|b| rows.names.text(Kind::BranchId, b.0)).transpose()?;
    let path = rows.names.text(Kind::PathId, removal.path.0)?;
    Ok(About { repository, branch: branch.unwrap_or_default(), path })
}

fn root_of(
    rows: &Rows,
    root: freehold_kernel::RootId,
    store: &str,
) -> Result<(RootPlace, String), HostError> {
    let Some(row) = rows.view.managed_roots.id(root.0) else {
        return Err(not_there("root", &uuid_text(root.0), "register it"));
    };
    let marker = rows.contents.get(&row.row_key()).and_then(|c| c.get("marker")).cloned().flatten();
    let place = RootPlace {
        id: row.id,
        name: uuid_text(row.id.0),
        path: rows.names.text(Kind::PathId, row.path.0)?.into(),
        marker: marker.unwrap_or_default(),
        store: store.to_owned(),
    };
    Ok((place, rows.names.text(Kind::HostId, row.host.0)?))
}

fn optional<I: freehold_kernel::Id>(
    rows: &Rows,
    id: Option<I>,
) -> Result<Option<String>, HostError> {
    Ok(id.map(|id| rows.names.text(I::KIND, id.bits())).transpose()?)
}

fn salvage_line(rows: &Rows, s: &Salvage, store: &str) -> Result<Kept, HostError> {
    let about = about(rows, s.removal_id)?;
    let (root, machine) = root_of(rows, s.root_id, store)?;
    let settings = rows.view.settings.id(1).copied().unwrap_or(freehold_kernel::Settings::DEFAULT);
    Ok(Kept {
        id: uuid_text(s.id.0),
        what: KeptAs::Salvage,
        task: optional(rows, s.task_id)?,
        repo: optional(rows, s.repo_id)?,
        repository: rows.names.text(Kind::RepositoryId, s.repository_id.0)?,
        branch: about.branch,
        base: optional(rows, s.base)?.unwrap_or_default(),
        contents: s.contents,
        size: Some(s.size),
        since: s.made_at,
        until: settings.salvage_expires(s.made_at),
        state: s.state.code(),
        root,
        machine,
        path: about.path.into(),
        name: text_of(rows, s, "ref_name"),
    })
}

fn trash_line(rows: &Rows, t: &Trash, store: &str) -> Result<Kept, HostError> {
    let about = about(rows, t.removal_id)?;
    let (root, machine) = root_of(rows, t.root_id, store)?;
    let removal = rows.view.removals.id(t.removal_id.0);
    let repository =
        about.repository.map(|r| rows.names.text(Kind::RepositoryId, r)).transpose()?;
    Ok(Kept {
        id: uuid_text(t.id.0),
        what: KeptAs::Trash,
        task: optional(rows, t.task_id)?,
        repo: optional(rows, t.repo_id)?,
        repository: repository.unwrap_or_default(),
        branch: about.branch,
        base: optional(rows, removal.and_then(|r| r.head))?.unwrap_or_default(),
        contents: removal.map_or(Unsaved::UNKNOWN, |r| r.unsaved),
        size: None,
        since: t.created_at,
        until: t.restorable_until,
        state: t.state.code(),
        root,
        machine,
        path: about.path.into(),
        name: uuid_text(t.removal_id.0),
    })
}
