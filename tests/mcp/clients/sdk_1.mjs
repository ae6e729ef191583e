// Helve's server as a client of the first TypeScript SDK sees it: sdk_1.mjs ERA URL, or sdk_1.mjs ERA COMMAND ARGUMENT... It knows one era.
import { EventEmitter, once } from 'node:events';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

import { walk } from './walk.mjs';

const [, , , place, ...args] = process.argv;
const client = new Client({ name: 'sdk-1', version: '1.0.0' });
const changes = new EventEmitter();
client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes.emit('change'));
const transport = place.startsWith('http')
    ? new StreamableHTTPClientTransport(new URL(place))
    : new StdioClientTransport({ command: place, args, env: process.env });
// The version is told to transports that want to know it, and to nobody else.
let protocol;
const tell = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = version => {
    protocol = version;
    tell?.(version);
};
await client.connect(transport);
await walk(client, (params, options) => client.callTool(params, undefined, options), protocol, () => once(changes, 'change'));
