//! What was kept comes back, or goes by consent.

use freehold_git::salvage;
use freehold_kernel::*;
use freehold_store::{HostError, KeptAs, Operation, Target};

use crate::scene::{Scene, What};
use crate::support::steps::work;
use crate::support::*;

impl Scene {
    /// The task was archived with its worktree and is active again.
    pub(crate) fn prepare_kept(&mut self, host: &TestHost) {
        let kept_as = match self.what {
            What::PutBack => KeptAs::Salvage,
            _ => {
                // Longer than everything that is waited for below.
                let long = Span::hours(24 * 30);
                let keep = |old| Settings { trash_retention: long, ..old };
                host.change_settings(&ann(), keep, None).unwrap();
                KeptAs::Trash
            }
        };
        let path = self.unsaved(host, "e", "b", "");
        self.before = Some(state(&path));
        host.archive_task(&ann(), "t", &Operation::new("archive")).unwrap();
        work(host);
        assert!(!path.exists());
        host.unarchive_task(&ann(), "t", false).unwrap();
        let kept = host.kept().unwrap().into_iter().find(|k| k.what == kept_as);
        self.id = kept.unwrap().id;
    }

    /// It is back as it was, at once or by a second try; in kept trash again where that won.
    pub(crate) fn judge_kept(&self, host: &TestHost, came: Option<&Result<(), HostError>>) {
        assert_eq!(host.unresolved_attempts().unwrap(), Vec::<String>::new());
        if self.what == What::TrashAgain {
            if rows(host, &[TableId::Tasks]).view.tasks.iter().all(|t| t.archived_at.is_none()) {
                host.archive_task(&ann(), "t", &Operation::new("late")).unwrap();
            }
            self.settle(host);
            assert_eq!(self.ground.registered(), Vec::<std::path::PathBuf>::new());
            assert_eq!(self.ground.leftovers(host), Vec::<std::path::PathBuf>::new());
            host.unarchive_task(&ann(), "t", false).unwrap();
        }
        if host.places_of("t").unwrap().is_empty() {
            let again = self.what == What::TrashAgain;
            assert!(again || !matches!(came, Some(Ok(()))), "it was put back, and is not there");
            let kept = host.kept().unwrap();
            // What a compensation put away is kept under another name; the same work is in both.
            let mut all = kept
                .iter()
                .rev()
                .filter(|k| (k.what == KeptAs::Salvage) == (self.what == What::PutBack));
            let id = kept.iter().find(|k| k.id == self.id).or_else(|| all.next());
            host.put_back(&ann(), &id.unwrap().id, &Target::default()).unwrap();
        }
        let places = host.places_of("t").unwrap();
        let [place] = &places[..] else { panic!("not one place: {places:?}") };
        assert_eq!(Some(&state(&place.path)), self.before.as_ref());
        assert_eq!(self.ground.registered(), std::slice::from_ref(&place.path));
        self.settle(host);
    }

    /// Two tasks were archived; of the first one's salvage the time is over.
    pub(crate) fn prepare_expiry(&mut self, host: &TestHost) {
        let words = Some("a day is enough");
        let day = |old| Settings { salvage_retention: Span::hours(24), ..old };
        host.change_settings(&ann(), day, words).unwrap();
        let _goes = self.unsaved(host, "e", "b", "of the one that goes\n");
        host.archive_task(&ann(), "t", &Operation::new("first")).unwrap();
        work(host);
        let [kept] = &host.kept().unwrap()[..] else { panic!("not one") };
        self.id.clone_from(&kept.id);
        let sql = "UPDATE settings SET salvage_consent_at = 1; UPDATE salvage SET made_at = 1";
        rusqlite::Connection::open(&self.ground.store_path).unwrap().execute_batch(sql).unwrap();
        assert_eq!(host.lapsed_salvage().unwrap(), std::slice::from_ref(&self.id));
        // Only the other one's has to stay.
        self.markers.clear();
        task(host, "t2").unwrap();
        environment(host, "e2", "t2").unwrap();
        let _stays = self.unsaved(host, "e2", "c", "of the one that stays\n");
        host.archive_task(&ann(), "t2", &Operation::new("second")).unwrap();
        work(host);
    }

    /// `freehold gc` ends it.
    pub(crate) fn judge_expiry(&self, host: &TestHost) {
        let gc = || {
            let output = self.ground.program(&["gc", "--yes"]).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "gc: {said}");
        };
        gc();
        let all = rows(host, &[TableId::Salvage]);
        let state = |s: &Salvage| (freehold_store::names::uuid_text(s.id.0) == self.id, s.state);
        let mut states: Vec<_> = all.view.salvage.iter().map(state).collect();
        states.sort();
        assert_eq!(states, [(false, SalvageState::Verified), (true, SalvageState::Expired)]);
        let [root] = &host.roots().unwrap()[..] else { panic!("not one root") };
        let entries = salvage::list(root).unwrap();
        assert_eq!(entries.len(), 1, "{entries:?}");
        for text in ["untracked\nof the one that goes\n", "ignored\nof the one that goes\n"] {
            assert!(!salvage_holds(&self.ground, text), "its bytes are still there: {text}");
        }
    }
}
