//! Which models run the proxy, and with which options.

use regatta_serve::{Model, ServeError, Service};

/// Whether each client has its own connections to the nodes, and sequential code.
pub fn is_sequential(model: Model) -> bool {
    matches!(model, Model::Fork | Model::Prefork | Model::Threads | Model::Green)
}

/// Checks that the model runs the proxy with these options.
pub fn check(
    model: Model,
    options: impl IntoIterator<Item = &'static str>,
) -> Result<(), ServeError> {
    let (name, service) = (model.name(), Service::Shard.name());
    let because = match model {
        Model::Async => {
            Some("it serves each connection with a separate program; use percore, uring or epoll")
        }
        Model::Cluster => Some("the proxy cannot span its processes; use percore, uring or epoll"),
        _ => None,
    };
    if let Some(because) = because {
        return Err(ServeError::Unsupported { model: name, service, because });
    }
    for option in options {
        if let Some(because) = why_not(model, option) {
            return Err(ServeError::NoOption { model: name, service, option, because });
        }
    }
    Ok(())
}

/// Why a model does not support an option, if it does not.
fn why_not(model: Model, option: &str) -> Option<&'static str> {
    let because = match option {
        "--unix" if matches!(model, Model::Percore | Model::Uring) => return None,
        "--unix" => "a thread of its own serves the Unix socket; use percore or uring",
        _ if !is_sequential(model) => return None,
        "--map cluster" => {
            "a request is sent again only where clients share connections to the nodes; use percore, uring, \
             epoll, poll or select"
        }
        "--sentinels" => {
            "masters are followed only where clients share connections to the nodes; use percore, uring, epoll, poll \
             or select"
        }
        "--metrics" => {
            "requests are counted only where clients share connections to the nodes; use percore, uring, \
             epoll, poll or select"
        }
        "--drain" => {
            "each client has its own program there, and a stop closes all of them at once; use percore, \
             uring, epoll, poll or select"
        }
        "--auth nodes" => {
            "a user is verified only where clients share connections to the nodes; use percore, uring, \
             epoll, poll or select"
        }
        "--max-clients" | "--max-clients-per-address" => {
            "clients are counted only where a thread serves many of them; use percore, uring, epoll, poll \
             or select"
        }
        _ => {
            "TLS needs a model whose threads serve many clients; use percore, uring, epoll, poll or select"
        }
    };
    Some(because)
}
