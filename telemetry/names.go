package telemetry

// The names from OpenTelemetry's conventions (GenAI, MCP; status: development) that this package uses. A test
// compares them with the published list.
const (
	attrOperation    = "gen_ai.operation.name"
	attrProvider     = "gen_ai.provider.name"
	attrConversation = "gen_ai.conversation.id"
	attrAgent        = "gen_ai.agent.name"
	attrModel        = "gen_ai.request.model"
	attrInput        = "gen_ai.usage.input_tokens"
	attrOutput       = "gen_ai.usage.output_tokens"
	attrCacheRead    = "gen_ai.usage.cache_read.input_tokens"
	attrReasoning    = "gen_ai.usage.reasoning.output_tokens"
	attrFinish       = "gen_ai.response.finish_reasons"
	attrTool         = "gen_ai.tool.name"
	attrToolCall     = "gen_ai.tool.call.id"
	attrTokenType    = "gen_ai.token.type"
	attrMethod       = "mcp.method.name"
	attrError        = "error.type"
	attrUser         = "user.id"
	attrSession      = "session.id"
	attrService      = "service.name"
	attrVersion      = "service.version"

	metricTokens    = "gen_ai.client.token.usage"
	metricModelTime = "gen_ai.client.operation.duration"
	metricToolTime  = "gen_ai.execute_tool.duration"
	metricRunTime   = "gen_ai.invoke_agent.duration"

	opChat  = "chat"
	opTool  = "execute_tool"
	opAgent = "invoke_agent"
)

// Attributes defined by tenon.
const (
	attrServer  = "tenon.server"
	attrID      = "tenon.server.id" // unique identity
	attrVerdict = "tenon.verdict"
	attrBy      = "tenon.decided_by"
	attrHit     = "tenon.cache.hit"
	attrRun     = "tenon.run"
	attrStep    = "tenon.step"
	attrState   = "tenon.state"
)
