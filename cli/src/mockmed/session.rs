//! Who is signed in. Sessions live in memory: a restart signs everybody out.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Name of the session cookie.
pub(super) const COOKIE: &str = "mockmed_session";
/// A session ends this long after signing in, used or not: one shift.
pub(super) const LIFETIME: Duration = Duration::from_secs(8 * 60 * 60);
/// Most sessions at once; the one that ends soonest makes room.
const SESSIONS_MAX: usize = 1000;

/// The open sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    lifetime: Duration,
    open: Mutex<BTreeMap<String, Session>>,
}

/// One signed-in user.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// The user's name.
    pub(super) user: String,
    ends: Instant,
}

impl Session {
    /// Time that is left.
    pub(super) fn remaining(&self) -> Duration {
        self.ends.saturating_duration_since(Instant::now())
    }
}

impl Sessions {
    /// No sessions; each will last for `lifetime`.
    pub(super) fn new(lifetime: Duration) -> Self {
        Self { lifetime, open: Mutex::default() }
    }

    /// Opens a session and returns its secret token; `None` when the system has no randomness to give.
    pub(super) fn open(&self, user: &str) -> Option<String> {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).ok()?;
        let token: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, session| !session.remaining().is_zero());
        if open.len() >= SESSIONS_MAX {
            let oldest = open.iter().min_by_key(|(_, session)| session.ends).map(|(token, _)| token.clone());
            oldest.and_then(|token| open.remove(&token));
        }
        let session = Session { user: user.to_owned(), ends: Instant::now() + self.lifetime };
        open.insert(token.clone(), session);
        Some(token)
    }

    /// The session of this token, while it lasts.
    pub(super) fn find(&self, token: &str) -> Option<Session> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.get(token).filter(|session| !session.remaining().is_zero()).cloned()
    }

    /// Ends a session.
    pub(super) fn end(&self, token: &str) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(token);
    }
}

/// The value of a `Set-Cookie` header that hands out `token`.
pub(super) fn set_cookie(token: &str) -> String {
    format!("{COOKIE}={token}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax", LIFETIME.as_secs())
}

/// The value of a `Set-Cookie` header that takes the cookie back.
pub(super) fn clear_cookie() -> String {
    format!("{COOKIE}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lasts_for_its_lifetime_and_not_longer() {
        let (lasting, instant) = (Sessions::new(LIFETIME), Sessions::new(Duration::ZERO));
        let (kept, lost) = (lasting.open("nurse").unwrap(), instant.open("nurse").unwrap());
        assert_eq!(lasting.find(&kept).unwrap().user, "nurse");
        assert!(instant.find(&lost).is_none(), "expired");
        assert!(lasting.find(&lost).is_none(), "never opened here");
        lasting.end(&kept);
        assert!(lasting.find(&kept).is_none(), "ended");
    }

    #[test]
    fn sessions_are_bounded_and_the_oldest_makes_room() {
        let sessions = Sessions::new(LIFETIME);
        let tokens: Vec<_> = (0..=SESSIONS_MAX).map(|_| sessions.open("nurse").unwrap()).collect();
        assert!(sessions.find(&tokens[0]).is_none());
        assert!(tokens[1..].iter().all(|token| sessions.find(token).is_some()));
    }
}
