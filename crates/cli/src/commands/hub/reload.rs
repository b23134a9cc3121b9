//! What a reload changes in a running hub, and what it refuses.

use crate::{
    options::hub::HubArgs,
    reload::{Applied, InFiles, Options, Reloaded},
};
use anyhow::{Context, ensure};
use clap::FromArgMatches;
use regatta_serve::{Host, Hub, Model, Stop, check_hub};

/// A hub whose options can be applied while it runs.
pub struct ReloadedHub {
    pub hub: Hub,
    pub model: Model,
    /// Its address and limits, which stay.
    pub host: Host,
    /// Checks options as a start with them does.
    pub check: fn(&Options, Stop) -> anyhow::Result<()>,
}

impl Reloaded for ReloadedHub {
    const LIVE: &'static [&'static str] = &[
        "api_key_file",
        "backlog",
        "backlog_messages",
        "deflate",
        "echo",
        "history",
        "history_ttl",
        "join_rate",
        "jwks",
        "jwt_algorithm",
        "jwt_audience",
        "jwt_issuer",
        "jwt_key",
        "longest_message",
        "max_members",
        "max_room_members",
        "max_rooms",
        "member_rate",
        "origin",
        "page",
        "ping_after",
        "presence",
        "room",
        "room_rate",
        "slow",
        "token_file",
    ];

    fn apply(&mut self, options: &Options) -> anyhow::Result<Applied> {
        (self.check)(options, self.host.stop.clone())?;
        let args = HubArgs::from_arg_matches(&options.matches).context("the options")?;
        let settings = args
            .settings(&options.rooms, self.model, &self.host)
            .and_then(|settings| {
                Ok(check_hub(&settings, self.model, &self.host).map(|()| settings)?)
            })
            .context("with the options that need a restart as they are")?;
        ensure!(
            self.hub.admits_everybody() || !settings.access.admits_everybody(),
            "the new file lets everybody in, who needed a token before: that needs a restart"
        );
        ensure!(
            settings.api.is_some() == self.hub.has_api(),
            "api_key_file: adding or removing the API for backends needs a restart"
        );
        ensure!(
            self.hub.may_notify(&settings),
            "presence: with --broker, a hub that starts without presence in any room must be restarted to get it"
        );
        let (longest, memory) = (settings.longest, self.hub.memory_limit());
        ensure!(
            longest <= memory / 8,
            "longest_message: the present memory of {} MiB has room for less than eight messages of {longest} bytes; \
             raise memory and restart, or lower longest_message",
            memory >> 20
        );
        let has_other_secrets = self.hub.has_other_secrets(&settings);
        self.hub.reload(settings);
        let in_files = InFiles {
            what: "the token or the key in the files",
            keys: &["token_file", "api_key_file"],
        };
        Ok(Applied { in_files: has_other_secrets.then_some(in_files), kept: &[] })
    }
}
