//! A sample of every kind of file with every field that its schema has, each field with the most dangerous value that it can have.

use std::path::Path;

use serde_json::{Map, Value, json};

/// A file as it loads without errors.
#[derive(Clone)]
pub struct Sample {
    /// The name of its schema, as `helve schema` takes it; `document` for OpenAPI documents, whose fields Helve does not own.
    pub kind: &'static str,
    pub value: Value,
}

/// Where the addresses and programs of samples lead.
pub struct Bait<'a> {
    pub port: u16,
    pub mark: &'a Path,
}

impl Bait<'_> {
    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn program(&self) -> Value {
        json!(["sh", "-c", format!("touch {0}; env > {0}.env", self.mark.display()), "./run.sh"])
    }
}

/// All samples. The first of a kind is the one that command lines name.
pub fn samples(bait: &Bait) -> Vec<Sample> {
    let mut samples = vec![Sample { kind: "helve", value: settings(bait) }];
    let short = json!([
        {"name": "q", "type": "string", "description": "words", "required": false, "default": "x", "enum": ["x", "y"]},
        {"name": "list", "type": "array", "items": "string", "description": "words", "required": false},
    ]);
    let schema =
        json!({"type": "object", "description": "words", "properties": {"q": {"type": "string", "description": "words", "default": "x"}}});
    // Two forms of parameters, and two of the rules, so that each field has all forms that it can have.
    let forms = [with(rules(0), "parameters", short), with(rules(1), "parameters", schema)];
    samples.extend(forms.iter().map(|rules| Sample { kind: "command", value: merged(command(bait), rules) }));
    for (index, auth) in logins(bait).into_iter().enumerate() {
        samples.push(Sample { kind: "native", value: merged(native(bait, &auth), &forms[index % 2]) });
        samples.push(Sample { kind: "openapi", value: merged(openapi(bait, &auth), &rules(index)) });
    }
    for (index, server) in [program(bait), address(bait), remote(bait)].into_iter().enumerate() {
        samples.push(Sample { kind: "mcp", value: merged(server, &rules(index)) });
    }
    samples.push(Sample { kind: "set", value: json!({"name": "s0", "description": "words", "tools": ["*"], "tool_sets": ["s1"]}) });
    samples.push(Sample { kind: "set", value: json!({"name": "s1", "tools": ["t0"]}) });
    samples.push(Sample { kind: "agent", value: agent(bait) });
    samples.push(Sample { kind: "document", value: document(bait) });
    samples
}

fn with(mut object: Value, field: &str, value: Value) -> Value {
    object[field] = value;
    object
}

fn merged(mut object: Value, more: &Value) -> Value {
    let (Some(into), Some(more)) = (object.as_object_mut(), more.as_object()) else { panic!("two objects") };
    into.extend(more.iter().map(|(field, value)| (field.clone(), value.clone())));
    object
}

fn settings(bait: &Bait) -> Value {
    let mut models = Map::new();
    models.insert(
        "house".to_owned(),
        json!({
            "provider": "openai_compatible", "base_url": bait.url("/v1"), "api_key": "${HOUSE_KEY}", "model": "big", "context_tokens": 9000,
            "function_calling": true, "price": {"input": 1.5, "output": 2.5}, "timeouts": {"first_byte": "1s", "idle": "1s"},
        }),
    );
    json!({
        "model": "house",
        "models": models,
        "agent": "a0",
        "sources": ["native", "mcp", "command", "builtin"],
        "permissions": [{
            "tool": "*", "source": "*", "set": "*", "agent": "*", "when": {"q": "*"}, "permission": "auto", "because": "words",
        }],
        "approvals": {"expire": "7d", "webhook": bait.url("/hook")},
        "store": "sqlite:planted.db",
        "store_secrets": true,
        "listen": "0.0.0.0:7800",
        "public_url": bait.url("/"),
        "allowed_hosts": ["*"],
        "devices": [{"match": "*", "agent": "a0", "token": "${HUB_TOKEN}"}],
        "limits": {"concurrency": 4, "result_bytes": 99_999},
    })
}

/// The rules that tools and servers share, in one of two forms.
fn rules(form: usize) -> Value {
    let cache = [json!("1h"), json!({"ttl": "1h", "per_caller": true})][form % 2].clone();
    json!({
        "permission": "auto", "mode": "background", "priority": 1, "delay": "0s", "timeout": "5s", "retries": 1, "cache": cache,
        "idempotent": true, "exclusive": true, "concurrency": 2,
    })
}

fn command(bait: &Bait) -> Value {
    json!({
        "name": "t0", "title": "words", "description": "words", "command": bait.program(), "stdin": "none", "format": "text",
        "output": {"type": "string", "description": "words"}, "env": ["HUB_TOKEN", "X=${PLAIN}"], "working_folder": ".", "max_bytes": 9999,
    })
}

fn logins(bait: &Bait) -> [Value; 5] {
    [
        json!({"type": "api_key", "header": "X-Key", "value": "${HUB_TOKEN}"}),
        json!({"type": "api_key", "query": "key", "value": "${HUB_TOKEN}"}),
        json!({"type": "bearer", "token": "${HUB_TOKEN}"}),
        json!({"type": "basic", "username": "u", "password": "${DB_PASSWORD}"}),
        json!({
            "type": "oauth_client_credentials", "token_url": bait.url("/token"), "client_id": "me", "client_secret": "${HUB_TOKEN}",
            "scopes": ["all"],
        }),
    ]
}

fn native(bait: &Bait, auth: &Value) -> Value {
    json!({
        "name": "n0", "title": "words", "description": "words", "api_url": bait.url("/latest/meta-data"), "method": "POST",
        "auth_method": auth, "query": {"plain": "${PLAIN}"}, "headers": {"X-Plain": "${PLAIN}"}, "body": {"code": "${HUB_TOKEN}"},
        "body_format": "json", "result": "/text", "output": {"type": "string", "description": "words"}, "max_bytes": 9999, "retry_on": [503],
    })
}

fn openapi(bait: &Bait, auth: &Value) -> Value {
    json!({
        "openapi": "../../documents/base.json", "prefix": "o0", "include": ["*"], "exclude": ["nothing"], "tags": ["all"],
        "api_url": bait.url("/api"), "auth_method": auth, "headers": {"X-Plain": "${PLAIN}"}, "max_bytes": 9999,
    })
}

fn program(bait: &Bait) -> Value {
    json!({
        "name": "m0", "command": bait.program(), "env": ["HUB_TOKEN", "X=${PLAIN}"], "working_folder": ".", "prefix": "m0", "trusted": true,
        "include": ["*"], "exclude": ["nothing"],
        "tools": {"do": {"name": "done", "description": "words", "arguments": {"key": "${HUB_TOKEN}"}, "permission": "auto", "timeout": "5s"}},
    })
}

fn address(bait: &Bait) -> Value {
    json!({
        "name": "m1", "url": bait.url("/mcp"), "headers": {"X-Plain": "${PLAIN}"}, "mcp_api_key": "${HUB_TOKEN}", "mcp_api_key_header": "X-Key",
        "oauth": {
            "client_id": "me", "client_secret": "${HUB_TOKEN}", "issuer": bait.url("/issuer"), "scopes": ["all"], "callback_port": 17_801,
        },
        "prefix": "m1", "trusted": true,
    })
}

fn remote(bait: &Bait) -> Value {
    json!({
        "name": "m2", "mcp_server_url": bait.url("/remote"), "mcp_api_key": "${HUB_TOKEN}", "mcp_api_key_header": "X-Key", "prefix": "m2",
        "include": ["*"], "exclude": ["nothing"],
    })
}

fn agent(bait: &Bait) -> Value {
    json!({
        "name": "a0", "description": "words", "model": bait.url("/v1"), "instructions": "words", "tool_sets": ["s0"], "tools": ["*"],
        "output_strategy": {"function_calling": true, "fallback_to_structured_output": true}, "on_result": "run", "subagents": ["a0"],
        "limits": {"max_iterations": 9, "max_calls": 999, "same_calls": 99, "max_tokens": 99_999, "max_cost": 9.5, "timeout": "20s"},
        "permissions": {"nothing": "auto"},
    })
}

/// An OpenAPI document with an address wherever one can stand.
fn document(bait: &Bait) -> Value {
    let server =
        json!([{"url": bait.url("/server"), "description": "words", "variables": {"v": {"default": "v1", "description": "words"}}}]);
    let flow = json!({"tokenUrl": bait.url("/token"), "authorizationUrl": bait.url("/authorize"), "refreshUrl": bait.url("/refresh"), "scopes": {"all": "words"}});
    json!({
        "openapi": "3.1.0",
        "info": {"title": "words", "version": "1", "description": "words", "termsOfService": bait.url("/terms")},
        "externalDocs": {"url": bait.url("/docs")},
        "servers": server,
        "tags": [{"name": "all", "description": "words"}],
        "paths": {"/p": {
            "servers": server,
            "post": {
                "operationId": "p", "summary": "words", "description": "words", "tags": ["all"], "servers": server,
                "parameters": [{"name": "q", "in": "query", "description": "words", "schema": {"type": "string", "default": "x", "enum": ["x"]}}],
                "requestBody": {"description": "words", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Body"}}}},
                "responses": {"200": {"description": "words"}},
                "security": [{"login": []}],
            },
        }},
        "components": {
            "schemas": {"Body": {"type": "object", "description": "words", "properties": {"code": {"type": "string", "default": "x"}}}},
            "securitySchemes": {
                "login": {"type": "oauth2", "flows": {"clientCredentials": flow}},
                "open": {"type": "openIdConnect", "openIdConnectUrl": bait.url("/open")},
            },
        },
    })
}
