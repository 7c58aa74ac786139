//! The power fails: what the machine had in its memory is gone, what had reached the disk is there.
//!
//! The data file lies on a file system of its own, on a loop device that writes straight through to the image.
//! The server is killed and the image is copied at once, while it is still mounted: what the kernel holds in its
//! cache of that file system is not in the copy. Root is needed, and a kernel with loop devices and ext4. The
//! twin of the test runs the same binary, whose syncs do nothing (a library in the place of the system's
//! `fsync` and `fdatasync`, what `synchronous=OFF` amounts to): it must lose moves, or the test could not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::data_file::Folder;
use crate::house::{House, client_at};
use crate::player::Player;
use crate::sigkill::games;

/// How often the power fails, with syncs and without.
const FAILURES: u64 = 5;

/// How many asks are acknowledged before the first failure; before each later one so many more. From about five
/// hundred on the write-ahead log has been carried over into the file.
const TOLD: usize = 300;

const WITHOUT_SYNC: &str = "int fsync(int file) { (void)file; return 0; }
int fdatasync(int file) { (void)file; return 0; }
";

/// What a command prints, or what is wrong with it.
fn run(command: &str, arguments: &[&str]) -> Result<String, String> {
    let told = |problem: &str| format!("{command} {}: {problem}", arguments.join(" "));
    let output = Command::new(command).args(arguments).output().map_err(|error| told(&error.to_string()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(told(String::from_utf8_lossy(&output.stderr).trim()))
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// A mounted image. Unmounted when dropped.
struct Disk {
    device: String,
    folder: PathBuf,
}

impl Disk {
    /// Mounts an image. Nothing is written to it by time alone: only what is synced is.
    fn mount(image: &Path, folder: PathBuf) -> Result<Self, String> {
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let device = run("losetup", &["--find", "--show", "--direct-io=on", text(image)])?;
        let disk = Self { device, folder };
        run("mount", &["-t", "ext4", "-o", "commit=300", &disk.device, text(&disk.folder)])?;
        Ok(disk)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = run("umount", &[text(&self.folder)]);
        let _ = run("losetup", &["--detach", &self.device]);
    }
}

/// A new image with a file system on it.
fn image(folder: &Path) -> Result<PathBuf, String> {
    let image = folder.join("image");
    let file = fs::File::create(&image).map_err(|error| error.to_string())?;
    file.set_len(64 << 20).map_err(|error| error.to_string())?;
    run("mkfs.ext4", &["-q", text(&image)])?;
    Ok(image)
}

/// Plays, fails, and looks: how many asks were acknowledged, and how many of them are missing.
async fn fail(seed: u64, preload: Option<&Path>) -> Result<(usize, usize), String> {
    let folder = Folder::on_disk();
    let image = image(folder.path())?;
    let disk = Disk::mount(&image, folder.path().join("before"))?;
    let players = (0..8).map(|index| Player::new(seed * 1_000 + index as u64, games(index), None)).collect();
    let mut house = House::new(&disk.folder.join("games.db"), &[], seed, players);
    // The file itself is there, in both cases.
    drop(house.start());
    run("sync", &["--file-system", text(&house.data)])?;

    house.preload = preload.map(Path::to_owned);
    let mut process = house.start();
    let playing = house.play(&process, &[]).await;
    playing.told(TOLD * (1 + usize::try_from(seed).expect("small"))).await;
    process.kill();
    let copy = folder.path().join("copy");
    run("cp", &["--sparse=always", text(&image), text(&copy)])?;
    let told = house.gather(playing).await;
    drop(disk);

    let disk = Disk::mount(&copy, folder.path().join("after"))?;
    (house.data, house.preload) = (disk.folder.join("games.db"), None);
    // What a server without syncs leaves may be less than its lock file says; here it is counted how much less.
    let _ = fs::remove_file(disk.folder.join("games.db.lock"));
    let process = house.start();
    let mut client = client_at(process.addr).await;
    let mut missing = 0;
    for player in &mut house.players {
        missing += player.count_missing(&mut client).await;
    }
    if preload.is_none() && missing == 0 {
        house.audit(&process).await;
        let found = house.findings("1 power failure");
        assert_eq!((found.missing, found.doubled, found.wrong), Default::default());
    }
    drop(process);
    Ok((told, missing))
}

/// "The power failed. Every move that I was told of was there when it was back."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs root and loop devices: see CONTRIBUTING.md"]
async fn what_was_acknowledged_survives_a_power_failure_and_would_not_without_syncs() {
    let folder = Folder::on_disk();
    let (source, library) = (folder.path().join("nosync.c"), folder.path().join("nosync.so"));
    fs::write(&source, WITHOUT_SYNC).expect("written");
    run("cc", &["-shared", "-fPIC", "-o", text(&library), text(&source)]).expect("a C compiler, as SQLite needs one");
    let probe = image(folder.path()).and_then(|image| Disk::mount(&image, folder.path().join("probe")));
    if let Err(why) = probe.map(drop) {
        println!("SKIPPED, nothing was tested: {why}");
        return;
    }
    let mut lost = 0;
    for seed in 0..FAILURES {
        let (told, missing) = fail(seed, None).await.expect("as the probe");
        println!("with syncs: {told} acknowledged, {missing} missing");
        assert_eq!(missing, 0);
        let (told, missing) = fail(seed, Some(&library)).await.expect("as the probe");
        println!("without syncs: {told} acknowledged, {missing} missing");
        lost += missing;
    }
    assert!(lost > 0, "a server without syncs lost nothing: this test proves nothing");
}
