//! The ways to call one tool: bare rmcp, Helve's client alone, and Helve as an agent uses it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, LazyLock};

use helve::prelude::*;
use helve::tool::DynTool;
use helve_mcp::{McpDefinition, McpOptions, McpSource};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Map, json};

use super::Era;
use super::server::Kind;

const TEXT: &str = "What is said is said again, word by word.";

/// Where the server is.
#[derive(Clone)]
pub enum ModelEndpoint {
    Stdio,
    Http(String),
}

/// A server over HTTP, which ends with this.
pub struct HttpServer(Child);

impl HttpServer {
    /// Starts it, and gives its address.
    pub fn start(kind: Kind) -> (Self, ModelEndpoint) {
        let [program, arguments @ ..] = &kind.command("http")[..] else { unreachable!("a command") };
        let mut child = std::process::Command::new(program).args(arguments).stdout(Stdio::piped()).spawn().expect("a server");
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut address).expect("an address");
        (Self(child), ModelEndpoint::Http(address.trim().to_owned()))
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("an end");
    }
}

/// One way to make a call.
pub enum Side {
    Bare(RunningService<RoleClient, ()>),
    Client(Arc<dyn DynTool>, #[expect(dead_code, reason = "without its source the tool is gone")] Arc<McpSource>),
    Layers(Helve, Toolkit),
}

impl Side {
    /// Only rmcp.
    pub async fn bare(kind: Kind, place: &ModelEndpoint) -> Self {
        let lifecycle = match kind.era {
            Era::Modern => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
            Era::Legacy => ClientLifecycleMode::Initialize,
        };
        match place {
            ModelEndpoint::Stdio => {
                let [program, arguments @ ..] = &kind.command("stdio")[..] else { unreachable!("a command") };
                let mut command = tokio::process::Command::new(program);
                command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
                let mut child = command.spawn().expect("a server");
                let pipes = (child.stdout.take().expect("a pipe"), child.stdin.take().expect("a pipe"));
                Self::Bare(().serve_with_lifecycle(pipes, lifecycle).await.expect("a greeting"))
            }
            ModelEndpoint::Http(address) => {
                let config = StreamableHttpClientTransportConfig::with_uri(address.as_str());
                let transport = StreamableHttpClientTransport::with_client(http_client(), config);
                Self::Bare(().serve_with_lifecycle(transport, lifecycle).await.expect("a greeting"))
            }
        }
    }

    /// Helve's client alone: a tool of the source, called without layers.
    pub async fn client(kind: Kind, place: &ModelEndpoint) -> Self {
        let source = connect(kind, place, "bench");
        source.settled().await;
        let catalogue = Catalogue::new();
        catalogue.add_source(source.clone());
        Self::Client(catalogue.get("bench_echo").expect("a tool").tool().clone(), source)
    }

    /// All of Helve.
    pub async fn layers(kind: Kind, place: &ModelEndpoint) -> Self {
        let helve = Helve::new();
        helve.catalogue().add_source(connect(kind, place, "bench"));
        helve.catalogue().settled().await;
        let toolkit = helve.toolkit();
        Self::Layers(helve, toolkit)
    }

    /// Makes a call.
    pub async fn call(&self) {
        match self {
            Self::Bare(client) => {
                let arguments = Map::from_iter([("text".to_owned(), json!(TEXT))]);
                let result = client.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments)).await.expect("a result");
                assert_eq!(result.content[0].as_text().expect("a text").text, TEXT);
            }
            Self::Client(tool, _) => {
                let output = tool.call(&call(), &CallContext::default()).await.expect("an output");
                assert_eq!(output.text, TEXT);
            }
            Self::Layers(helve, toolkit) => {
                let outcome = helve.executor().execute(toolkit, call(), &CallContext::default()).await;
                assert!(outcome.is_success(), "{outcome:?}");
            }
        }
    }
}

fn call() -> ToolCall {
    ToolCall::new("bench_echo", json!({"text": TEXT}))
}

/// An empty project. The servers' programs lie outside of it, like most: one inside is hashed before it is started.
static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));

/// Begins to connect a server, as Helve does for a file in `tools/mcp`.
pub fn connect(kind: Kind, place: &ModelEndpoint, name: &str) -> Arc<McpSource> {
    let mut written = json!({"name": name, "trusted": true});
    match place {
        ModelEndpoint::Stdio => written["command"] = json!(kind.command("stdio")),
        ModelEndpoint::Http(address) => written["url"] = json!(address),
    }
    let definition: McpDefinition = serde_json::from_value(written).expect("a definition");
    McpSource::connect(&definition, FOLDER.path(), &McpOptions::default()).expect("a source")
}

/// One that keeps its connections, which makes a call a third faster than the one that rmcp makes by itself.
fn http_client() -> reqwest::Client {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let tls = tls.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    reqwest::Client::builder().tls_backend_preconfigured(tls).build().expect("a client")
}
