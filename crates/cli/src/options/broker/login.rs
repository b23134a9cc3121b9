//! As whom a hub connects to its broker, or to the Sentinels of it.

use crate::options::{renewed::Renewed, word::word};
use regatta_proto::resp::write_command;
use regatta_serve::HubPassword;
use std::{path::Path, sync::Arc};

/// A user and a password, if there is one.
#[derive(Clone)]
pub struct Login {
    pub user: Option<String>,
    pub password: Option<HubPassword>,
}

impl Login {
    /// Reads the password in a file. It is read again when the file changes: each connection gets the newest.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or contains no password.
    pub fn read(user: Option<&str>, password: Option<&Path>) -> anyhow::Result<Login> {
        let password = password.map(renewed).transpose()?;
        Ok(Login { user: user.map(str::to_owned), password })
    }

    /// Appends `AUTH` with the newest password. Returns whether there is one.
    pub fn write(&self, out: &mut Vec<u8>) -> bool {
        let Some(password) = self.password.as_ref().map(|newest| newest()) else { return false };
        let user = self.user.as_deref().map(str::as_bytes);
        let words = [&b"AUTH"[..]].into_iter().chain(user).chain([password.as_bytes()]);
        write_command(words.collect::<Vec<_>>(), out);
        true
    }
}

fn renewed(path: &Path) -> anyhow::Result<HubPassword> {
    let path = path.to_owned();
    let password = Renewed::read(vec![path.clone()], "password", move || word(&path, "password"))?;
    Ok(Arc::new(move || password.current()))
}
