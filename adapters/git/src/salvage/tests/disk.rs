//! A disk that is full (W-34), on a small memory file system in a mount namespace of its own.

use super::*;

const INSIDE: &str = "FREEHOLD_TEST_SMALL_DISK";

#[test]
fn a_full_disk_is_said_and_nothing_is_half_kept() {
    if let Some(small) = std::env::var_os(INSIDE) {
        return on_the_small_disk(Path::new(&small));
    }
    let dir = tempfile::tempdir().unwrap();
    let name = "salvage::tests::disk::a_full_disk_is_said_and_nothing_is_half_kept";
    let out = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c"])
        .arg("mount -t tmpfs -o size=4m tmpfs \"$0\" && exec \"$@\"")
        .arg(dir.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, dir.path())
        .output()
        .unwrap();
    let said = text(&out.stdout) + &text(&out.stderr);
    assert!(
        out.status.success() && said.contains("1 passed"),
        "the test needs a mount namespace and a memory file system of its own: {said}"
    );
}

fn on_the_small_disk(small: &Path) {
    let mut rig = Rig::new();
    let root = RootPlace { path: small.join("root"), ..rig.place.root.clone() };
    rig.remove();
    rig.place.root = crate::root::make_root(&root).unwrap();
    rig.place.path = rig.place.root.path.join("ws/w1");
    rig.add(&[], &["work"]);
    let mut state = 1u64;
    let noise: Vec<u8> = (0..1_800_000)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        })
        .collect();
    write(&rig.file("noise.bin"), &noise);
    let before = bytes_of(rig.work());
    let error = rig.save().unwrap_err();
    assert_eq!(error.reason, Reason::DiskFull, "{error}");
    assert_eq!(bytes_of(rig.work()), before);
    assert!(crate::salvage::list(&rig.place.root).unwrap().is_empty());
    let book = crate::root::book(&rig.place.root);
    assert!(!book.join("salvage-scratch").exists(), "the disk is not left full");
    // With room, the same step goes through.
    write(&rig.file("noise.bin"), &noise[..100_000]);
    rig.saved();
}
