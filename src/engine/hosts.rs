//! The hosts that an engine needs, which its sandbox lets its programs reach.

use crate::model::{HostPattern, HostPort};
use crate::sandbox::Sandbox;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct EngineHosts {
    /// Which has its models; `None`: unknown.
    pub(crate) endpoint: Option<HostPort>,
    /// Others, such as those of its login.
    pub(crate) others: Vec<HostPattern>,
}

impl EngineHosts {
    /// The sandbox of an engine that needs these hosts, and why its network is open, if it is for that.
    pub(crate) async fn within(self, sandbox: Sandbox) -> (Sandbox, Option<String>) {
        let Self { endpoint, others } = self;
        let hosts = endpoint.iter().cloned().map(HostPattern::from).chain(others).collect();
        sandbox.for_engine(endpoint.as_ref(), hosts).await
    }
}
