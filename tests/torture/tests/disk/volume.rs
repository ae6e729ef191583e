//! A small disk of its own: an image with a file system, behind a loop device. It is gone when this is dropped.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// So large it is.
const SIZE: u64 = 16 << 20;
/// Timeout for a process to release it.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Volume {
    device: String,
    folder: TempDir,
}

impl Volume {
    /// Makes one; nothing, and a word about it, where that cannot be done.
    pub fn new(test: &str) -> Option<Self> {
        let made = make();
        if let Err(why) = &made {
            helve_testkit::skip(test, why);
        }
        made.ok()
    }

    /// The folder of its files.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// Fills it to the last byte.
    pub fn fill(&self) {
        let mut file = File::create(self.ballast()).expect("a file");
        for size in [1 << 20, 1 << 16, 1 << 12, 1 << 9, 1] {
            while file.write_all(&vec![7; size]).and_then(|()| file.sync_all()).is_ok() {}
        }
    }

    /// Makes room again.
    pub fn empty(&self) {
        fs::remove_file(self.ballast()).expect("room");
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Fails the disk: from now on nothing can be written, also to open files.
    pub fn fail(&self) {
        // What is in memory is as it is on the disk, so that each write from now on is a new one.
        run("sync", &["-f", &self.path().to_string_lossy()]).expect("a disk that works");
        run("mount", &["-o", "remount,abort", &self.path().to_string_lossy()]).expect("a disk that fails");
    }

    /// Unmounts it as soon as it is unused, and mounts it again.
    pub fn replace(&self) {
        self.unmount();
        self.mount("rw");
    }

    /// Like this, but read-only.
    pub fn replace_read_only(&self) {
        self.unmount();
        self.mount("ro");
    }

    fn mount(&self, mode: &str) {
        run("mount", &["-o", mode, &self.device, &self.path().to_string_lossy()]).expect("a disk");
    }

    fn unmount(&self) {
        let begun = Instant::now();
        while let Err(why) = run("umount", &[&self.path().to_string_lossy()]) {
            assert!(begun.elapsed() < PATIENCE, "{why}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn make() -> Result<Volume, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (image, place) = (folder.path().join("image"), folder.path().join("disk"));
    File::create(&image).and_then(|file| file.set_len(SIZE)).and_then(|()| fs::create_dir(&place)).map_err(|error| error.to_string())?;
    let image = path(&image);
    run("mkfs.ext4", &["-q", "-F", "-m", "0", image])?;
    let device = run("losetup", &["--find", "--show", image])?.trim().to_owned();
    // From here on it is detached again, whatever happens.
    let volume = Volume { device, folder };
    run("mount", &[&volume.device, path(&place)])?;
    Ok(volume)
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

/// Runs a program of the system. Returns its output, or why it failed.
fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // A test that stopped in the middle may still have files open; the device goes when they do.
        let _ = run("umount", &["--lazy", path(&self.path())]);
        if let Err(why) = run("losetup", &["--detach", &self.device]) {
            eprintln!("{} is still there: {why}", self.device);
        }
    }
}
