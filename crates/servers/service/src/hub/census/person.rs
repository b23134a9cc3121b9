//! Who a member is.

use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;

/// Who a member is.
#[derive(Clone, Debug, Default)]
pub(in crate::hub) struct Person {
    /// The user of its token.
    pub user: Option<Box<str>>,
    /// What its token says about it to backends, in JSON.
    pub info: Option<Box<RawValue>>,
    /// The name that it chose.
    pub name: Option<Arc<str>>,
    /// The number of its connection, if that may be in several rooms. It has this number in each of them.
    pub connection: Option<usize>,
}

impl Person {
    /// The user of its token; empty without one.
    pub fn user(&self) -> &str {
        self.user.as_deref().unwrap_or("")
    }

    /// Its number for backends and clients, if it has this place among all who have entered.
    pub fn number(&self, place: usize) -> usize {
        self.connection.unwrap_or(place)
    }
}

/// Who a member is, in JSON.
#[derive(Serialize)]
struct ClientInfo<'a> {
    client: &'a str,
    user: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    conn_info: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chan_info: Option<ChosenName<'a>>,
}

#[derive(Serialize)]
struct ChosenName<'a> {
    name: &'a str,
}

/// What a member with this number is called, for backends and clients. `node`: the number of its hub, if that has a broker.
pub(in crate::hub) fn client_of(node: Option<u64>, number: usize) -> String {
    node.map_or_else(|| number.to_string(), |node| format!("{node:016x}-{number}"))
}

/// Who a member is, in JSON, as backends see it: this client.
pub(in crate::hub) fn client_info(client: &str, person: &Person) -> String {
    let info = ClientInfo {
        client,
        user: person.user(),
        conn_info: person.info.as_deref(),
        chan_info: person.name.as_deref().map(|name| ChosenName { name }),
    };
    serde_json::to_string(&info).expect("it has a form in JSON")
}
