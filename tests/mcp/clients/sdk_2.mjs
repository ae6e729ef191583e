// Helve's server as a client of the second TypeScript SDK sees it. Takes what sdk_1.mjs takes.
import { EventEmitter, once } from 'node:events';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { walk } from './walk.mjs';

const [, , era, place, ...args] = process.argv;
const changes = new EventEmitter();
const client = new Client(
    { name: 'sdk-2', version: '1.0.0' },
    { versionNegotiation: { mode: era }, listChanged: { tools: { autoRefresh: false, onChanged: () => void changes.emit('change') } } }
);
const transport = place.startsWith('http')
    ? new StreamableHTTPClientTransport(new URL(place))
    : new StdioClientTransport({ command: place, args, env: process.env });
await client.connect(transport);
await walk(client, (params, options) => client.callTool(params, options), client.getNegotiatedProtocolVersion(), () => once(changes, 'change'));
