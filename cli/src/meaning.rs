//! What an event means, in words.
