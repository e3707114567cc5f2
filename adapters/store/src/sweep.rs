//! Purging what is kept no longer: trash whose time is over (D-20), with every tick or by hand
//! (`freehold gc`). Only of its own store, in roots of its own machine, and by the rows alone: a
//! folder that no row names is nobody's to sweep (W-41).

use freehold_kernel::{
    Authority, AuthorityKind, CleanupCommand, Command, ContentHash, Kind, OperatorCommand,
    RemovalId, Row, Settings, TableId, Token, Trash, TrashState, derive,
};

use crate::host::{Drive, Host, HostError, Who, fresh};
use crate::maker::not_there;
use crate::names::{id_of, uuid_text};
use crate::store::{Read, Rows, Store};
use crate::worker::Ticked;
use crate::workspaces::{Place, Workspaces};

impl<S: Store, W: Workspaces, D: Drive> Host<S, W, D> {
    /// Purges the trash whose retention has lapsed, and goes on with unlinkings whose executor is
    /// gone. What cannot go now, since somebody holds a file of it open, stays and is told.
    pub(crate) fn sweep(&self, ticked: &mut Ticked) -> Result<(), HostError> {
        let mut rows = self.read(&[
            Read::by(TableId::Trash, "state", &["kept", "purging"]),
            Read::all(TableId::ManagedRoots),
            Read::all(TableId::Instances),
        ])?;
        if rows.view.trash.is_empty() {
            return Ok(());
        }
        let own = rows.texts(rows.view.trash.iter().map(|t| t.id))?;
        self.read_on(&mut rows, vec![Read::among(TableId::Removals, "authority_id", own)])?;
        let now = rows.view.now;
        let machine = rows.view.instances.id(self.instance.0).map(|i| i.host);
        for trash in rows.view.trash.iter() {
            let served = rows.view.managed_roots.id(trash.root_id.0).map(|r| r.host) == machine;
            let due = match trash.state {
                TrashState::Kept => trash.restorable_until.is_some_and(|until| until <= now),
                // A living executor is not robbed (C-18); that of a job's own purge is the job's.
                TrashState::Purging => rows.view.removals.iter().any(|r| {
                    r.is_unsettled()
                        && r.authority() == Authority::Trash(trash.id)
                        && (r.instance_id == self.instance || r.lease_until <= now)
                }),
                TrashState::Restoring | TrashState::Gone => false,
            };
            if !served || !due {
                continue;
            }
            match self.purge_trash(&uuid_text(trash.id.0)) {
                Ok(()) => ticked.purged += 1,
                // Somebody else was faster, or restores it.
                Err(HostError::Refused(_)) => {}
                Err(error @ HostError::Store(_)) => return Err(error),
                Err(error) => ticked.troubles.push(error.to_string()),
            }
        }
        Ok(())
    }

    /// Changes the settings (D-25). A retention of salvage needs the words by which a person
    /// consents to it; who that is, and when, is recorded by the kernel (W-34).
    ///
    /// # Errors
    /// `settings_sane`: among others, a retention of salvage without words.
    pub fn change_settings(
        &self,
        who: &Who,
        change: impl FnOnce(Settings) -> Settings,
        consent: Option<&str>,
    ) -> Result<(), HostError> {
        let old = self.settings()?;
        let mut settings = change(old);
        let words = consent.map(str::trim).filter(|words| !words.is_empty());
        if let Some(words) = words {
            let digest = id_of(Kind::ContentHash, words);
            settings.salvage_consent = Some(ContentHash(derive(digest, 0)));
        } else if settings.salvage_retention != old.salvage_retention {
            // The old words were about the old retention.
            settings.salvage_consent = None;
        }
        self.ask(who, None, |c| {
            if let Some(words) = words.filter(|_| settings.salvage_retention.0 > 0) {
                c.content(TableId::Settings, 1, "salvage_consent_words", words);
            }
            Ok(Command::Operator(OperatorCommand::ChangeSettings { settings }))
        })?;
        Ok(())
    }

    /// The salvage entries whose retention, to which a person consented, has lapsed; none while
    /// nobody did. By id.
    ///
    /// # Errors
    /// The store's failure.
    pub fn lapsed_salvage(&self) -> Result<Vec<String>, HostError> {
        self.drive.wait(lapsed_salvage(&self.store))
    }

    /// Lets one salvage entry go: its row first, then its ref. What it held goes with the next
    /// collection of the private store.
    ///
    /// # Errors
    /// `salvage_lapsed` while it is kept; the physical failure, after which `freehold gc` and
    /// this call find the ref again.
    pub fn expire_salvage(&self, salvage: &str) -> Result<(), HostError> {
        let rows = self.read(&[
            Read::by(TableId::Salvage, "id", &[salvage]),
            Read::all(TableId::ManagedRoots),
        ])?;
        let Some(row) = rows.view.salvage.iter().next().copied() else {
            return Err(not_there("salvage entry", salvage, "list what is kept"));
        };
        let root = self.root_place(&rows, row.root_id)?;
        self.ask(&Who::system(), None, |_| {
            Ok(Command::Cleanup(CleanupCommand::ExpireSalvage { salvage: row.id }))
        })?;
        let name = rows.contents.get(&row.row_key()).and_then(|c| c.get("ref_name")).cloned();
        if let Some(name) = name.flatten() {
            self.workspaces.expire_salvage(&root, &name)?;
        }
        Ok(())
    }

    /// Unlinks what lies in a trash whose retention has lapsed, or goes on with an unlinking that
    /// was interrupted. Nothing else is touched but the registration that was moved with it.
    ///
    /// # Errors
    /// `trash_lapsed` while somebody may still want it back; the physical failure.
    pub fn purge_trash(&self, trash: &str) -> Result<(), HostError> {
        let mut rows = self
            .read(&[Read::by(TableId::Trash, "id", &[trash]), Read::all(TableId::ManagedRoots)])?;
        let Some(row) = rows.view.trash.iter().next().copied() else {
            return Err(not_there("trash", trash, "list what is kept: freehold gc"));
        };
        let place = self.place_of_trash(&mut rows, &row)?;
        let kept = self.in_trash(&mut rows, &row)?;
        let lock = self.workspaces.lock(&place)?;
        if row.state == TrashState::Purging
            && let Some(begun) = rows
                .view
                .removals
                .iter()
                .find(|r| r.is_unsettled() && r.authority() == Authority::Trash(row.id))
        {
            return self.resume_removal(begun, &lock, &place, None);
        }
        // Asked before it is said to be purging, which is final: who holds a file of it open may
        // still want all of it back (W-35).
        self.workspaces.check_unused(&lock, &place, &kept)?;
        let (id, instance) = (row.id, self.instance);
        let permitted = self.ask(&Who::system(), None, |c| {
            c.know(&rows.names);
            Ok(Command::Cleanup(CleanupCommand::Purge {
                trash: id,
                removal: RemovalId(fresh()),
                token: Token(fresh()),
                instance,
            }))
        })?;
        match permitted.warrant {
            Some(warrant) => self.take_steps(warrant, &lock, &place, None),
            None => Ok(()),
        }
    }

    /// The place that the trash was moved from, out of the removal that filled it.
    pub(crate) fn place_of_trash(
        &self,
        rows: &mut Rows,
        trash: &Trash,
    ) -> Result<Place, HostError> {
        let (filler, own) = (uuid_text(trash.removal_id.0), uuid_text(trash.id.0));
        self.read_on(
            rows,
            vec![
                Read::by(TableId::Removals, "id", &[&filler]),
                Read::by(TableId::Removals, "authority_id", &[&own]),
            ],
        )?;
        let removal = rows.view.removals.id(trash.removal_id.0).copied();
        let Some(removal) = removal else {
            return Err(not_there("removal of the trash", &filler, "look at the trash by hand"));
        };
        let resources = rows.texts(removal.resource)?;
        let attempts = match removal.authority {
            AuthorityKind::Attempt => vec![crate::run::Stored::Text(
                rows.names.text(Kind::AnyId, removal.authority_id.0)?,
            )],
            AuthorityKind::Job | AuthorityKind::Trash => Vec::new(),
        };
        self.read_on(
            rows,
            vec![
                Read::among(TableId::Resources, "id", resources),
                Read::among(TableId::Attempts, "id", attempts),
            ],
        )?;
        if let Some(r) = removal.resource.and_then(|r| rows.view.resources.id(r.0)).copied() {
            return self.place(
                rows,
                Some(trash.root_id),
                Some(trash.path.0),
                r.repository_id.map_or(0, |x| x.0),
                r.branch.map(|b| b.0),
                r.branch_created,
                r.start_commit.map(|c| c.0),
                r.worktree_id.map(|w| w.0),
            );
        }
        match rows.view.attempts.id(removal.authority_id.0).copied() {
            Some(attempt) => self.place_of_attempt(rows, &attempt),
            None => Err(not_there("resource of the trash", &filler, "look at the trash by hand")),
        }
    }
}

/// The salvage that has lapsed by consent and is not needed by trash that is kept (W-34, W-35),
/// read without an instance: for dry runs.
///
/// # Errors
/// The store's failure.
pub async fn lapsed_salvage<S: Store>(store: &S) -> Result<Vec<String>, HostError> {
    let rows = store
        .read(&[
            Read::by(TableId::Salvage, "state", &["verified", "restored"]),
            Read::by(TableId::Trash, "state", &["kept", "restoring", "purging"]),
            Read::all(TableId::Settings),
        ])
        .await?;
    let settings = rows.view.settings.id(1).copied().unwrap_or(Settings::DEFAULT);
    let lapsed = |s: &&freehold_kernel::Salvage| {
        settings.salvage_expires(s.made_at).is_some_and(|until| until <= rows.view.now)
            && !rows.view.trash.iter().any(|t| t.removal_id == s.removal_id)
    };
    Ok(rows.view.salvage.iter().filter(lapsed).map(|s| uuid_text(s.id.0)).collect())
}
