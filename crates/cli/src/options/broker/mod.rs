//! The broker of a hub: its URL, where it is (`names`, `sentinels`, `cluster`), as whom a hub connects (`login`), and
//! how (`tls`). `follower` is the thread that finds out where it is, and `asker` how that asks.

mod asker;
mod cluster;
mod follower;
mod login;
mod names;
mod sentinels;
mod tls;
mod url;

use anyhow::{bail, ensure};
use cluster::InCluster;
use login::Login;
use regatta_serve::{HubBroker, HubBrokerTls, HubPlace, HubSettings};
use sentinels::Managed;
use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    path::Path,
    sync::Arc,
};
use url::{BrokerUrl, Target};

pub use tls::TlsOptions;

/// The prefix of channels, unless another one is given.
const PREFIX: &str = "regatta";
/// Maximum length of a prefix, in bytes.
const LONGEST_PREFIX: usize = 64;

/// Maximum of `--longest-message` if the broker keeps messages. Four fetches with such a message at once are half of what
/// Redis holds back for a connection by default (`client-output-buffer-limit pubsub 32mb`).
const LONGEST_KEPT: usize = 4 << 20;

/// The options for a broker.
#[derive(Clone, Copy, Debug, Default)]
pub struct BrokerOptions<'a> {
    pub url: &'a str,
    pub user: Option<&'a str>,
    pub password: Option<&'a Path>,
    pub prefix: Option<&'a str>,
    pub sentinel_user: Option<&'a str>,
    pub sentinel_password: Option<&'a Path>,
    pub tls: TlsOptions<'a>,
}

impl BrokerOptions<'_> {
    /// The broker that the options name.
    ///
    /// # Errors
    /// Says what is wrong with the URL, the prefix or a file.
    pub fn read(&self) -> anyhow::Result<HubBroker> {
        let url = BrokerUrl::read(self.url)?;
        let prefix = self.prefix.unwrap_or(PREFIX);
        let is_word = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_graphic());
        ensure!(
            is_word && prefix.len() <= LONGEST_PREFIX,
            "--broker-prefix {prefix:?}: expected 1 to {LONGEST_PREFIX} printable ASCII characters without spaces"
        );
        let is_in_cluster = matches!(url.target, Target::Cluster(_));
        ensure!(
            !(is_in_cluster && prefix.contains(['{', '}'])),
            "--broker-prefix {prefix:?}: in a cluster it is the hash tag of all channels, so it has no braces"
        );
        let login = Login::read(self.user, self.password)?;
        let tls = self.tls.read(&url)?;
        let (name, place) = self.place(url.target, prefix, &login, tls.clone())?;
        let Login { user, password } = login;
        Ok(HubBroker {
            name,
            place,
            user,
            password,
            tls,
            prefix: prefix.to_owned(),
            is_in_cluster,
            node: RandomState::new().build_hasher().finish(),
            secret: RandomState::new().build_hasher().finish(),
            health: Arc::default(),
        })
    }

    /// Where the broker is, and its name for messages.
    fn place(
        &self,
        target: Target,
        prefix: &str,
        login: &Login,
        tls: Option<HubBrokerTls>,
    ) -> anyhow::Result<(String, Arc<dyn HubPlace>)> {
        let of_sentinels = Login::read(self.sentinel_user, self.sentinel_password)?;
        ensure!(
            of_sentinels.password.is_none() || matches!(target, Target::Sentinels(..)),
            "--broker-sentinel-password-file has no use, because the broker is not one of Sentinels; write \
             --broker redis+sentinel://HOST:PORT,HOST:PORT,HOST:PORT/MASTER, or leave it out"
        );
        Ok(match target {
            Target::Server(server) => (server.to_string(), names::place(server)),
            Target::Sentinels(all, master) => {
                let managed = Managed::new(all, &master, of_sentinels, tls);
                (master, Arc::new(managed))
            }
            Target::Cluster(nodes) => {
                let name = format!("cluster {}", nodes[0]);
                (name.clone(), Arc::new(InCluster::new(name, nodes, prefix, login.clone(), tls)))
            }
        })
    }
}

/// Checks that the settings of a hub are possible with a broker, if it has one.
///
/// # Errors
/// Says which option is not, and why.
pub fn check_with_broker(settings: &HubSettings) -> anyhow::Result<()> {
    if settings.broker.is_none() {
        return Ok(());
    }
    let keeps = |kept: Option<usize>| kept.is_some_and(|kept| kept > 0);
    let keeps =
        settings.limits.history.are_kept() || settings.rooms.iter().any(|rule| keeps(rule.history));
    if keeps && settings.longest > LONGEST_KEPT {
        bail!(
            "--longest-message {}: with --broker and --history a message may have at most {LONGEST_KEPT} bytes, because \
             the broker closes connections with too much unread output (client-output-buffer-limit); lower it",
            settings.longest
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_has_a_name_and_a_prefix() {
        for (url, name) in [
            ("redis://[::1]:7000", "[::1]:7000"),
            ("redis+sentinel://a,b,c/cache", "cache"),
            ("redis+cluster://a:1,b", "cluster a:1"),
        ] {
            let broker = BrokerOptions { url, ..BrokerOptions::default() }.read().unwrap();
            assert_eq!((&*broker.name, &*broker.prefix), (name, "regatta"));
        }
        let in_cluster = [("redis+cluster://a", "{a}"), ("redis+cluster://a", "}a")];
        let long = "x".repeat(65);
        let wrong = ["", "a b", "ä", &long].map(|prefix| ("redis://a", prefix));
        for (url, prefix) in wrong.into_iter().chain(in_cluster) {
            let prefix = Some(prefix);
            let options = BrokerOptions { url, prefix, ..BrokerOptions::default() };
            assert!(options.read().is_err(), "{prefix:?}");
        }
    }

    #[test]
    fn options_for_tls_and_the_url_agree() {
        let ca = Some(Path::new("/no/file"));
        let (without, with) = (TlsOptions::default(), TlsOptions { ca, ..TlsOptions::default() });
        let named = TlsOptions { server_name: Some("a b"), ..with };
        for (url, tls, why) in [
            ("rediss://a", without, "needs --broker-ca"),
            ("redis://a", with, "--broker-ca has no use"),
            ("redis+sentinel://a/m", with, "--broker-ca has no use"),
            ("rediss+sentinel://a/m", with, "needs --broker-server-name"),
            ("rediss+cluster://a", with, "needs --broker-server-name"),
            ("rediss://a", named, "a b: expected a host name"),
            ("rediss://a", with, "cannot read /no/file"),
        ] {
            let options = BrokerOptions { url, tls, ..BrokerOptions::default() };
            let error = format!("{:#}", options.read().unwrap_err());
            assert!(error.contains(why), "{url}: {error}");
        }
    }

    #[test]
    fn a_password_of_sentinels_needs_sentinels() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "secret").unwrap();
        let options = BrokerOptions {
            url: "redis://a",
            sentinel_password: Some(&file),
            ..BrokerOptions::default()
        };
        let error = options.read().unwrap_err().to_string();
        assert!(error.contains("--broker-sentinel-password-file has no use"), "{error}");
    }
}
