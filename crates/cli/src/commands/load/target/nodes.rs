//! Further nodes of a hub, from their URLs.

use super::{connect::ConnectArgs, url::Target};
use anyhow::{Context, bail};
use regatta_load::Node;

/// The nodes at `urls`, which must differ from the server `first` only in host and port.
pub fn nodes(urls: &[String], first: &Target, connect: &ConnectArgs) -> anyhow::Result<Vec<Node>> {
    let node = |url: &String| {
        let node = Target::at(url, Some(&first.workload), connect)?;
        if node.path != first.path {
            let [path, other] =
                [&node.path, &first.path].map(|path| path.as_deref().unwrap_or("none"));
            bail!(
                "its path is {path}, and that of the first URL {other}: all nodes serve the same room"
            );
        }
        if node.certified != first.certified {
            bail!("all nodes need the scheme of the first URL, and with wss:// also its host name");
        }
        Ok(Node { target: node.address, host: node.host })
    };
    urls.iter().map(|url| node(url).with_context(|| url.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_differ_only_in_host_and_port() {
        let first = Target::of("ws://127.0.0.1:8080/ws/a", None).unwrap();
        let of = |url: &str| nodes(&[url.to_owned()], &first, &ConnectArgs::default());
        let node =
            Node { target: "127.0.0.2:8081".parse().unwrap(), host: "127.0.0.2:8081".into() };
        assert_eq!(of("ws://127.0.0.2:8081/ws/a").unwrap(), [node]);
        for (url, why) in [
            ("ws://127.0.0.1:8081/ws/b", "its path is /ws/b, and that of the first URL /ws/a"),
            ("ws://127.0.0.1:8081", "its path is none"),
            ("wss://127.0.0.1:8081/ws/a", "the scheme of the first URL"),
            ("line://127.0.0.1:8081", "needs a URL of the form ws://"),
            ("127.0.0.1:8081", "is not a URL"),
        ] {
            let error = format!("{:#}", of(url).unwrap_err());
            assert!(error.contains(why) && error.contains(url), "{error}");
        }
    }
}
