// An interface to describe: three kinds of things, each listed, made, read, changed and removed.
const schema = { type: "object", required: ["name"], properties: {
  id: { type: "integer" }, name: { type: "string" }, status: { type: "string", enum: ["open", "sold"] },
  tags: { type: "array", items: { type: "string" } } } };
const reply = { 200: { description: "Done", content: { "application/json": { schema } } }, 404: { description: "Not there" } };
const id = { name: "id", in: "path", required: true, schema: { type: "integer" } };
const about = (tag, summary, more) => ({ tags: [tag], summary, operationId: summary.replace(/ /g, ""), responses: reply, ...more });
const body = { requestBody: { content: { "application/json": { schema } } } };
const query = { parameters: [{ name: "status", in: "query", schema: { type: "string", enum: ["open", "sold"] } },
  { name: "limit", in: "query", schema: { type: "integer" } }] };
const shop = { openapi: "3.0.3", info: { title: "Shop", version: "1.0", description: "What a shop **offers**." },
  servers: [{ url: "/api" }], paths: {},
  components: { securitySchemes: { key: { type: "apiKey", in: "header", name: "key" }, basic: { type: "http", scheme: "basic" } }, schemas: { Thing: schema } },
  security: [{ key: [] }] };
for (const tag of ["pet", "order", "user"]) {
  shop.paths[`/${tag}`] = { get: about(tag, `List every ${tag}`, query), post: about(tag, `Add one ${tag}`, body) };
  shop.paths[`/${tag}/{id}`] = { get: about(tag, `Read one ${tag}`, { parameters: [id] }),
    put: about(tag, `Change one ${tag}`, { parameters: [id], ...body }), delete: about(tag, `Remove one ${tag}`, { parameters: [id], deprecated: true }) };
}
