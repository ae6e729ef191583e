//! The server that both sides call: `echo`, by rmcp, over stdio or HTTP. Further tools only fill its list.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::io::stdio_pipes;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::Era;

/// What a server is like. Written as arguments of the command that runs it.
#[derive(Clone, Copy)]
pub struct Kind {
    pub era: Era,
    /// How many tools it lists.
    pub tools: usize,
    /// How long it waits before its first word.
    pub delay: Duration,
}

impl Kind {
    /// A server with `echo` alone, which answers at once.
    pub fn plain(era: Era) -> Self {
        Self { era, tools: 1, delay: Duration::ZERO }
    }

    /// The command that runs it.
    pub fn command(self, transport: &str) -> Vec<String> {
        let program = std::env::current_exe().expect("a path").to_string_lossy().into_owned();
        let era = if self.era == Era::Modern { "modern" } else { "legacy" };
        let numbers = [self.tools.to_string(), self.delay.as_millis().to_string()];
        [program, "mcp-server".to_owned(), transport.to_owned(), era.to_owned()].into_iter().chain(numbers).collect()
    }

    fn read(mut arguments: impl Iterator<Item = String>) -> Self {
        let era = if arguments.next().expect("an era") == "modern" { Era::Modern } else { Era::Legacy };
        let mut number = || arguments.next().and_then(|number| number.parse().ok()).expect("a number");
        let tools = number();
        Self { era, tools: usize::try_from(tools).expect("a count"), delay: Duration::from_millis(number()) }
    }
}

/// Serves until stdin is closed, or, over HTTP, until it is killed. Over HTTP the first line of its output is its address.
pub fn run(transport: &str, arguments: impl Iterator<Item = String>) {
    let kind = Kind::read(arguments);
    std::thread::sleep(kind.delay);
    let server = Echo::new(kind);
    super::runtime().block_on(async {
        if transport == "stdio" {
            let running = server.serve(stdio_pipes()).await.expect("a greeting");
            running.waiting().await.expect("an end");
        } else {
            serve_http(server).await;
        }
    });
}

async fn serve_http(server: Echo) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("http://{}/mcp", listener.local_addr().expect("an address"));
    let (sessions, config) = (Arc::new(LocalSessionManager::default()), StreamableHttpServerConfig::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    loop {
        let (socket, _) = listener.accept().await.expect("a connection");
        socket.set_nodelay(true).expect("a socket");
        let service = service.clone();
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            // Whoever hangs up has what they want.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), answer).await;
        });
    }
}

#[derive(Clone)]
struct Echo {
    era: Era,
    tools: Arc<[Tool]>,
}

impl Echo {
    fn new(kind: Kind) -> Self {
        let Value::Object(schema) = json!({"type": "object", "required": ["text"], "properties": {
            "text": {"type": "string", "description": "What is said."}}})
        else {
            unreachable!("an object")
        };
        let schema = Arc::new(schema);
        let name = |number: usize| if number == 0 { "echo".to_owned() } else { format!("echo_{number}") };
        let tool = |number| Tool::new(name(number), "Says the same again.", schema.clone());
        Self { era: kind.era, tools: (0..kind.tools).map(tool).collect() }
    }
}

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(match self.era {
            Era::Modern => ProtocolVersion::KNOWN_VERSIONS,
            Era::Legacy => ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25),
        })
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.to_vec()))
    }

    async fn call_tool(&self, request: CallToolRequestParams, _: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let text = request.arguments.as_ref().and_then(|arguments| arguments.get("text")?.as_str()).unwrap_or_default();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}
