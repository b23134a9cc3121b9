//! Adapters: variants of a workload's protocol for contenders that do not speak it as is.

use regatta_script::{Workload, dialects::adapters};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

/// A variant of a workload's protocol that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum Adapter {
    /// Echoes every byte that it receives: the null server.
    Echo,
    /// Sends `{reply}` for each `{request_bytes}` bytes that it receives, or on each stream: the null server of `hello`
    /// and of unary calls.
    Canned,
    /// Speaks its own variant of the protocol, given by the name of the load's adapter for it; see
    /// [`Workload::adapted`].
    Speaks(&'static str),
}

impl Adapter {
    /// Whether the server replies without parsing its requests.
    pub fn is_null(self) -> bool {
        matches!(self, Adapter::Echo | Adapter::Canned)
    }

    /// Returns the workload as it is sent to a server with this adapter.
    ///
    /// # Errors
    /// If the adapter does not serve the workload, as a sentence.
    pub(crate) fn asked(self, workload: &Workload) -> Result<Workload, String> {
        let name = workload.name();
        match self {
            Adapter::Echo => workload.echoed().ok_or_else(|| {
                format!(
                    "the adapter `echo` does not serve {name}, because its replies differ from its \
                     requests"
                )
            }),
            Adapter::Canned => {
                let canned = workload.canned(Default::default());
                canned.map(|(workload, _)| workload).ok_or_else(|| {
                    format!(
                        "the adapter `canned` serves only hello and unary calls, because all \
                         requests get the same reply; this race runs {name}"
                    )
                })
            }
            Adapter::Speaks(adapter) => workload.adapted(adapter).ok_or_else(|| {
                format!("the adapter `{adapter}` does not serve {name}; it serves hub")
            }),
        }
    }
}

impl TryFrom<String> for Adapter {
    type Error = String;

    fn try_from(name: String) -> Result<Adapter, String> {
        match (name.as_str(), adapters().find(|adapter| *adapter == name)) {
            ("echo", _) => Ok(Adapter::Echo),
            ("canned", _) => Ok(Adapter::Canned),
            (_, Some(adapter)) => Ok(Adapter::Speaks(adapter)),
            (_, None) => {
                let known: Vec<&str> = ["echo", "canned"].into_iter().chain(adapters()).collect();
                let (last, others) = known.split_last().expect("there are two at least");
                let others = others.join(", ");
                Err(format!("there is no adapter {name:?}; there are {others} and {last}"))
            }
        }
    }
}

impl<'de> Deserialize<'de> for Adapter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Adapter, D::Error> {
        Adapter::try_from(String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl From<Adapter> for String {
    fn from(adapter: Adapter) -> String {
        match adapter {
            Adapter::Echo => "echo",
            Adapter::Canned => "canned",
            Adapter::Speaks(name) => name,
        }
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_serves_only_its_own_workloads() {
        let workload = |name| Workload::parse(name).unwrap();
        for name in adapters() {
            let adapter = Adapter::try_from(name.to_string()).unwrap();
            assert_eq!(String::from(adapter), name);
            assert!(!adapter.is_null());
            assert_eq!(adapter.asked(&workload("hub")).unwrap().name(), "hub");
            let error = adapter.asked(&workload("hello")).unwrap_err();
            assert!(error.contains(name) && error.contains("does not serve hello"), "{error}");
        }
        assert!(Adapter::Echo.asked(&workload("double")).is_ok());
        assert!(Adapter::Canned.asked(&workload("double")).is_err());
        assert!(Adapter::Echo.is_null() && Adapter::Canned.is_null());
    }
}
