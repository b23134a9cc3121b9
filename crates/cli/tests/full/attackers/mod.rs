//! Attackers of many kinds at once, on the proxy and on the hub: memory inside its budget, no honest client
//! with a wrong reply, their p99 at most twice the quiet one, nothing left of the attackers, and a stop in the
//! grace.
//!
//! Server, load, attackers and nodes share the machine, so each attacker makes a bounded number of steps per
//! second, at a lower priority: what is tested is whether a service lets some clients harm others, not
//! whether it gets CPU time. What of the p99 is the machine's and the nodes' is shown by a control: the same
//! attack on a second process. `REGATTA_ATTACKERS=60` runs only the attackers with that in their name, to find
//! a cause, and `REGATTA_ATTACKERS='!60'` all others.

mod attack;
mod beside;
mod hub;
mod proxy;
