// One walk through Helve's server, as any client of the TypeScript SDKs makes it, told as one JSON object.
import { writeFileSync } from 'node:fs';

const text = result => result.content.filter(block => block.type === 'text').map(block => block.text).join('\n');

/** The names of the tools, once the servers behind Helve are connected. */
async function names(client) {
    for (;;) {
        const found = (await client.listTools()).tools.map(tool => tool.name).sort();
        if (found.includes('everything_echo') && found.includes('time_convert_time')) return found;
        await new Promise(resolve => setTimeout(resolve, 100));
    }
}

/** `callTool` takes what the request says and options; `change` gives a promise that is kept when the server tells next that its list of tools has changed. */
export async function walk(client, callTool, protocol, change) {
    const call = (name, args = {}, options = {}) => callTool({ name, arguments: args }, options);
    const outcome = async (name, args) => {
        const result = await call(name, args);
        return { is_error: result.isError === true, text: text(result) };
    };
    const seen = { protocol, server: client.getServerVersion()?.name, tools: await names(client) };
    seen.echo = text(await call('everything_echo', { message: 'hi' }));
    seen.structured = (await call('everything_get-structured-content', { location: 'Chicago' })).structuredContent;
    seen.kinds = (await call('everything_get-tiny-image')).content.map(block => block.type);
    seen.error = await outcome('everything_get-resource-reference', { resourceType: 'Text', resourceId: 0.5 });
    seen.wrong = await outcome('everything_get-sum', { a: 'x', b: 2 });
    seen.unknown = await call('nobody_has_this').then(() => null, error => error.code);
    seen.progress = [];
    const onprogress = ({ progress, total, message }) => seen.progress.push([progress, total ?? null, message ?? null]);
    seen.slow = text(await call('everything_trigger-long-running-operation', { duration: 0.3, steps: 3 }, { onprogress }));
    const zones = { source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Shanghai' };
    seen.time = (await call('time_convert_time', zones)).structuredContent.time_difference;
    seen.later = text(await call('later'));
    console.error('a call waits;');
    seen.held = text(await call('held'));
    let heard = change();
    writeFileSync(process.env.ADD, process.env.ADDED);
    do {
        await heard;
        heard = change();
        seen.then = await names(client);
    } while (!seen.then.includes('added'));
    await client.close();
    console.log(JSON.stringify(seen));
}

setTimeout(() => {
    console.error('this takes too long');
    process.exit(1);
}, 100_000).unref();
