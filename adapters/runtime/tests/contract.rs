//! Local runtimes keep the contract of runtimes, with real processes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Mutex;
use std::time::Duration;

use freehold_kernel::RuntimeKind;
use freehold_runtime::LocalRuntimes;
use freehold_store::RuntimeHandle;
use freehold_testkit::{Manners, RuntimesRig, runtimes_contract};
use rustix::process::{Pid, Signal, kill_process_group};
use support::*;

/// Programs in a folder of a case's own.
struct Programs {
    ground: Ground,
    agents: Mutex<Vec<Agent>>,
}

fn pid(handle: &RuntimeHandle) -> u32 {
    handle.texts["pid"].parse().unwrap()
}

/// Ends its group, and waits until nobody of its session is left.
fn end_all(pid: u32) {
    let _gone =
        kill_process_group(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL);
    let session = pid.to_string();
    let of_it = |other: u32| {
        let text = std::fs::read_to_string(format!("/proc/{other}/stat")).unwrap_or_default();
        let fields = text.rsplit_once(')').map(|(_, fields)| fields.to_owned());
        fields.is_some_and(|f| f.split_whitespace().nth(3) == Some(&session)) && lives(other)
    };
    until("nobody of it is left", || {
        let all = std::fs::read_dir("/proc").unwrap();
        let mut pids = all.filter_map(|e| e.unwrap().file_name().to_str()?.parse().ok());
        !pids.any(of_it)
    });
}

impl RuntimesRig for Programs {
    type Runtimes = LocalRuntimes;

    fn fresh() -> Programs {
        Programs { ground: Ground::new(), agents: Mutex::default() }
    }

    fn open(&self) -> LocalRuntimes {
        impatient()
    }

    fn open_patient(&self) -> LocalRuntimes {
        LocalRuntimes::new().with_grace(Duration::from_secs(3))
    }

    fn begin(&self, by: &LocalRuntimes, manners: Manners) -> RuntimeHandle {
        let mut agent = self.ground.run(
            by,
            match manners {
                Manners::Listens => {
                    "trap 'echo > heard-$$; exit' TERM
                    echo ready; while :; do sleep 1000 & wait; done"
                }
                Manners::Deaf => "trap '' TERM; echo ready; while :; do sleep 1; done",
            },
        );
        assert_eq!(agent.hear(), "ready");
        let handle = agent.handle();
        self.agents.lock().unwrap().push(agent);
        handle
    }

    fn kill(&self, handle: &RuntimeHandle) {
        end_all(pid(handle));
    }

    fn runs(&self, handle: &RuntimeHandle) -> bool {
        lives(pid(handle))
    }

    fn ended_in_its_own_way(&self, handle: &RuntimeHandle) -> bool {
        self.ground.path.join(format!("heard-{}", pid(handle))).exists()
    }

    fn of_another_machine(&self, handle: &RuntimeHandle) -> RuntimeHandle {
        let texts: Texts = handle.texts.iter().map(|(k, v)| (*k, v.clone())).collect();
        let boot = altered(&texts, "boot", "another");
        let texts = altered(&boot, "host", "00000000000000000000000000000000");
        RuntimeHandle { texts: texts.into_iter().collect(), ..handle.clone() }
    }

    fn kinds() -> &'static [RuntimeKind] {
        &[RuntimeKind::Local]
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            for agent in self.agents.get_mut().unwrap() {
                assert!(!lives(agent.running.pid), "a case left one running");
            }
        }
    }
}

runtimes_contract!(Programs);
