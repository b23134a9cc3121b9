//! Races that are interrupted or killed, and resumed.

mod interrupted;
mod killed;
mod own_session;
mod resumed;
