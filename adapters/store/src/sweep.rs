//! Purging what is kept no longer: trash whose time is over (D-20). By hand (`freehold gc`) or by
//! a host that decides when; never by itself.

use freehold_kernel::{
    Authority, AuthorityKind, CleanupCommand, Command, Kind, RemovalId, TableId, Token, Trash,
    TrashState,
};

use crate::host::{Drive, Host, HostError, Who, fresh};
use crate::maker::not_there;
use crate::names::uuid_text;
use crate::store::{Read, Rows, Store};
use crate::workspaces::{Place, Workspaces};

impl<S: Store, W: Workspaces, D: Drive> Host<S, W, D> {
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
    fn place_of_trash(&self, rows: &mut Rows, trash: &Trash) -> Result<Place, HostError> {
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
