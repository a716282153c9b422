//! What the operating system tells: clocks, boot id, randomness, the operator's account. Everything that is Unix-only in
//! this crate stands here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use protocol::decision::Operator;
use protocol::digest::Sha256Digest;
use protocol::ids::BootId;
use protocol::time::{BootMillis, Moment, UnixMillis};

use super::ports::{Clock, Ids};

/// The kernel's clocks.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    boot_id: BootId,
}

impl SystemClock {
    /// A clock of this boot.
    #[must_use]
    pub fn new() -> Self {
        Self { boot_id: boot_id() }
    }

    /// The boot it counts in.
    #[must_use]
    pub const fn boot_id(&self) -> BootId {
        self.boot_id
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Moment {
            wall: UnixMillis(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)),
            boot_id: self.boot_id,
            boot: boot_time(),
        }
    }

    fn sleep(&self, span: Duration) {
        std::thread::sleep(span);
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const BOOT_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
/// Darwin's monotonic clock goes on while the machine sleeps, which is what a lease needs.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const BOOT_CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

fn boot_time() -> BootMillis {
    let time = rustix::time::clock_gettime(BOOT_CLOCK);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    BootMillis(seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000))
}

/// The kernel's name for this boot. Where there is none, the boot's wall time rounded to a minute stands in for it.
fn boot_id() -> BootId {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Ok(id) = journal::vfs::os::boot_id() {
        return id;
    }
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let booted = wall.saturating_sub(boot_time().0 / 1000) / 60;
    let mut id = [0_u8; 16];
    id.copy_from_slice(&Sha256Digest::of(&booted.to_le_bytes()).0[..16]);
    BootId(id)
}

/// Randomness of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemIds;

impl Ids for SystemIds {
    fn fresh(&self) -> Result<[u8; 16], std::io::Error> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        Ok(bytes)
    }
}

/// The effective OS account: the effective user id, looked up in the password database. Never an environment variable.
/// `None` when the database does not name it; then nobody can decide.
#[must_use]
pub fn effective_operator() -> Option<Operator> {
    let uid = rustix::process::geteuid().as_raw();
    let database = std::fs::read_to_string("/etc/passwd").ok();
    let from_file = database.as_deref().and_then(|text| account_of(text, uid));
    let name = match from_file {
        Some(name) => name,
        // Accounts of a directory service are not in the file; `id` asks the same database as the C library.
        None => {
            let output = std::process::Command::new("/usr/bin/id")
                .env_clear()
                .args(["-un", &uid.to_string()])
                .output()
                .ok()?;
            output.status.success().then(|| String::from_utf8(output.stdout).ok()).flatten()?
        }
    };
    Operator::new(&name)
}

fn account_of(database: &str, uid: u32) -> Option<String> {
    database.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let number = fields.nth(1)?;
        (number.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_the_one_of_the_effective_user_id_and_blank_fails_closed() {
        let database =
            "root:x:0:0::/root:/bin/sh\nanna:x:1000:1000::/home/anna:/bin/sh\n:x:7:7::/:/bin/false\n";
        assert_eq!(account_of(database, 1000).as_deref(), Some("anna"));
        assert_eq!(account_of(database, 1), None);
        assert_eq!(account_of(database, 7).and_then(|name| Operator::new(&name)), None);
    }

    #[test]
    fn both_clocks_run_forward_within_a_boot() {
        let clock = SystemClock::new();
        let (first, second) = (clock.now(), clock.now());
        assert_eq!(first.boot_id, second.boot_id);
        assert!(second.boot >= first.boot);
    }
}
