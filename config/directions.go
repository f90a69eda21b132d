package config

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/tenonhq/tenon/config/tree"
)

// row declares keys that have the same direction, combination and measure.
type row struct {
	keys      string // below the path of their section, separated by spaces
	direction Direction
	combine   Combination
	measure   Measure
	words     string // strictest first
	unlimited bool
	least     Layer
	fact      string
}

// section declares the keys below one path, or below several paths with the same keys.
type section struct {
	paths string // separated by spaces; "." is the top level of the file
	rows  []row
}

// sections declares every key of tenon.yaml. A new key needs a row here: TestDirections reports keys without one. The
// generated reference shows the table.
var sections = []section{
	{".", []row{
		{keys: "$schema version name", direction: Neutral, combine: CombineNearest, measure: MeasureText},
		{keys: "profile", direction: Loosens, combine: CombineNearest, measure: MeasureAny},
		{keys: "secrets servers tools models agents schedules", direction: Loosens, combine: CombineEntry,
			measure: MeasureEntries},
		{keys: "policy.groups", direction: Loosens, combine: CombineEach, measure: MeasureAny},
		{keys: "tool_tables tool_tables[].path tool_tables[].column", direction: Loosens, combine: CombineNearest,
			measure: MeasureText},
		{keys: "tool_search.threshold tool_search.always tool_search.results", direction: Neutral,
			combine: CombineNearest, measure: MeasureText},
		{keys: "tool_search.embeddings", direction: Loosens, combine: CombineFloor, measure: MeasureText},
		{keys: "tool_search.embeddings_timeout", direction: Neutral, combine: CombineNearest, measure: MeasureText},
		{keys: "prices", direction: Loosens, combine: CombineFloor, measure: MeasureAny},
		{keys: "registry.url registry.secret", direction: Loosens, combine: CombineFloor, measure: MeasureText},
		{keys: "engine.kind", direction: Neutral, combine: CombineNearest, measure: MeasureText},
		{keys: "engine.temporal.address engine.temporal.namespace engine.temporal.task_queue engine.temporal.api_key",
			direction: Loosens, combine: CombineFloor, measure: MeasureAny},
		{keys: "engine.temporal.tls engine.temporal.ca engine.temporal.cert engine.temporal.key", direction: Loosens,
			combine: CombineFloor, measure: MeasureAny},
		{keys: "engine.temporal.server_name engine.temporal.codec_key engine.temporal.search_attributes",
			direction: Loosens, combine: CombineFloor, measure: MeasureAny},
		{keys: "engine.temporal.deployment", direction: Neutral, combine: CombineNearest, measure: MeasureText},
		{keys: "tables.layout tables.batch_rows", direction: Neutral, combine: CombineNearest, measure: MeasureText},
		{keys: "tables.max_bytes", direction: Loosens, combine: CombineMin, measure: MeasureNumber, unlimited: true},
		{keys: "tables.legacy.read", direction: Loosens, combine: CombineStrictest, measure: MeasureWord,
			words: "deny warn allow"},
		{keys: "store.path store.retention", direction: Loosens, combine: CombineFloor, measure: MeasureAny},
		{keys: "store.postgres.dsn store.postgres.direct store.postgres.schema", direction: Loosens,
			combine: CombineFloor, measure: MeasureAny},
		{keys: "store.postgres.lease store.postgres.connections", direction: Neutral, combine: CombineNearest,
			measure: MeasureText},
		{keys: "store.key", direction: Loosens, combine: CombineFloor, measure: MeasureAny, least: LayerUser},
		{keys: "store.audit", direction: Tightens, combine: CombineStrictest, measure: MeasureSwitch},
		{keys: "store.redact", direction: Tightens, combine: CombineUnion, measure: MeasureEntries},
	}},
	{"trust", []row{
		{keys: "projects projects[].path projects[].loosen", direction: Loosens, combine: CombineUnion,
			measure: MeasureText, least: LayerUser},
		{keys: "forbid", direction: Tightens, combine: CombineUnion, measure: MeasureEntries, least: LayerAdmin},
	}},
	{"serve", []row{
		{keys: "listen replica_url auth.secret", direction: Loosens, combine: CombineFloor, measure: MeasureText},
		{keys: "agent replica", direction: Loosens, combine: CombineFloor, measure: MeasureAny},
		{keys: "auth.tokens", direction: Loosens, combine: CombineFloor, measure: MeasureEntries},
		{keys: "auth.oauth.url auth.oauth.issuers auth.oauth.issuers[].url auth.oauth.issuers[].jwks_uri " +
			"auth.oauth.issuers[].algorithms auth.oauth.endpoints auth.oauth.endpoints.NAME.audience " +
			"auth.oauth.endpoints.NAME.scopes", direction: Loosens, combine: CombineFloor, measure: MeasureAny},
		{keys: "on_disconnect", direction: Neutral, combine: CombineNearest, measure: MeasureText},
		{keys: "ui", direction: Loosens, combine: CombineStrictest, measure: MeasureSwitch},
		{keys: "apis", direction: Loosens, combine: CombineIntersection, measure: MeasureEntries, unlimited: true},
		{keys: "origins", direction: Loosens, combine: CombineIntersection, measure: MeasureEntries},
		{keys: "auth.type", direction: Loosens, combine: CombineStrictest, measure: MeasureWord, words: "token none"},
		{keys: "allow_server_edit", direction: Loosens, combine: CombineStrictest, measure: MeasureSwitch,
			least: LayerUser},
	}},
	{"gateway", []row{
		{keys: "hidden_characters", direction: Loosens, combine: CombineStrictest, measure: MeasureWord,
			words: "escape keep"},
		{keys: "park", direction: Neutral, combine: CombineNearest, measure: MeasureText},
		{keys: "endpoints", direction: Loosens, combine: CombineEntry, measure: MeasureEntries},
	}},
	{"gateway.endpoints.NAME", []row{
		{keys: "description", direction: Neutral, combine: CombineEntry, measure: MeasureText},
		{keys: "servers groups tools", direction: Loosens, combine: CombineEntry, measure: MeasureAny},
		{keys: "approve", direction: Loosens, combine: CombineEntry, measure: MeasureWord, words: "person client"},
		{keys: "mode", direction: Neutral, combine: CombineEntry, measure: MeasureText},
		{keys: "always", direction: Neutral, combine: CombineEntry, measure: MeasureEntries},
		{keys: "exclude", direction: Tightens, combine: CombineUnion, measure: MeasureEntries},
	}},
	{"telemetry", []row{
		{keys: "log_level log_format", direction: Neutral, combine: CombineNearest, measure: MeasureText},
		{keys: "metrics", direction: Loosens, combine: CombineStrictest, measure: MeasureSwitch},
		{keys: "otlp", direction: Loosens, combine: CombineFloor, measure: MeasureText},
	}},
	{"policy", []row{
		{keys: "rules rules[].when rules[].verdict", direction: Loosens, combine: CombineEach, measure: MeasureAny},
		{keys: "rules[].reason", direction: Neutral, combine: CombineEach, measure: MeasureText},
		{keys: "pins.changed", direction: Loosens, combine: CombineStrictest, measure: MeasureWord,
			words: "ask warn off"},
		{keys: "pins.new", direction: Loosens, combine: CombineStrictest, measure: MeasureWord, words: "ask allow"},
		{keys: "commands.allow", direction: Loosens, combine: CombineIntersection, measure: MeasureEntries,
			unlimited: true},
		{keys: "urls.require_https literal_secrets", direction: Loosens, combine: CombineStrictest,
			measure: MeasureWord, words: "error warn off"},
		{keys: "urls.allow_private", direction: Loosens, combine: CombineStrictest, measure: MeasureSwitch},
		{keys: "env_unresolved", direction: Loosens, combine: CombineStrictest, measure: MeasureWord,
			words: "error empty"},
	}},
	{"policy.defaults policy.groups.NAME servers.NAME.policy agents.NAME.policy tools.NAME.policy", []row{
		{keys: "approval.mode", direction: Loosens, combine: CombineEach, measure: MeasureWord,
			words: "always destructive never"},
		{keys: "approval.if", direction: Loosens, combine: CombineEach, measure: MeasureAny},
		{keys: "timeout timeout_progress result_bytes result_tokens", direction: Loosens, combine: CombineMin,
			measure: MeasureNumber},
		{keys: "expires max_calls.run max_calls.session concurrency", direction: Loosens, combine: CombineMin,
			measure: MeasureNumber, unlimited: true},
		{keys: "rate", direction: Loosens, combine: CombineMin, measure: MeasureRate, unlimited: true},
		{keys: "retry", direction: Loosens, combine: CombineStrictest, measure: MeasureWord,
			words: "never auto always"},
		{keys: "on_large_result", direction: Loosens, combine: CombineStrictest, measure: MeasureWord,
			words: "error truncate artifact"},
		{keys: "results", direction: Loosens, combine: CombineStrictest, measure: MeasureWord,
			words: "strict report off"},
		{keys: "cache.ttl", direction: Loosens, combine: CombineMin, measure: MeasureNumber},
		{keys: "cache.scope", direction: Loosens, combine: CombineStrictest, measure: MeasureWord,
			words: "run session project"},
		{keys: "cache.force", direction: Loosens, combine: CombineStrictest, measure: MeasureSwitch},
		{keys: "redact", direction: Tightens, combine: CombineUnion, measure: MeasureEntries},
		{keys: "cost", direction: Tightens, combine: CombineMax, measure: MeasureNumber},
	}},
	{"limits agents.NAME.limits", []row{
		{keys: "max_turns parallel_tools run_timeout max_depth", direction: Loosens, combine: CombineMin,
			measure: MeasureNumber},
		{keys: "tool_calls tokens cost", direction: Loosens, combine: CombineMin, measure: MeasureNumber,
			unlimited: true},
		{keys: "on_limit", direction: Loosens, combine: CombineStrictest, measure: MeasureWord,
			words: "fail final_response confirm"},
		{keys: "limit_prompt", direction: Neutral, combine: CombineNearest, measure: MeasureText},
	}},
	{"budgets.session budgets.day budgets.principal", []row{
		{keys: "turns tool_calls tokens cost time", direction: Loosens, combine: CombineMin, measure: MeasureNumber,
			unlimited: true},
	}},
	{"schedules.NAME", []row{
		{keys: "cron timezone question agent workflow arguments overlap catch_up", direction: Loosens,
			combine: CombineEntry, measure: MeasureText},
		{keys: "enabled", direction: Loosens, combine: CombineEntry, measure: MeasureSwitch},
	}},
	{"secrets.NAME", []row{
		{keys: "env file command keyring prompt", direction: Loosens, combine: CombineEntry, measure: MeasureText},
		{keys: "password", direction: Neutral, combine: CombineEntry, measure: MeasureText},
	}},
	{"servers.NAME", []row{
		{keys: "title description log_level result_format is_retrieval registry_name", direction: Neutral,
			combine: CombineEntry, measure: MeasureText},
		{keys: "timeout lifecycle share discover restart encoding protocol", direction: Neutral,
			combine: CombineEntry, measure: MeasureText},
		{keys: "sse_read_timeout terminate_on_close provider_options defer", direction: Neutral,
			combine: CombineEntry, measure: MeasureText},
		{keys: "naming.template naming.replace naming.allow naming.max_len naming.on_collision", direction: Loosens,
			combine: CombineEntry, measure: MeasureAny}, // rules and globs refer to tools by name
		{keys: "transform[].prefix transform[].describe transform[].rename load_tools", direction: Loosens,
			combine: CombineEntry, measure: MeasureAny},
		{keys: "enabled load_prompts prompts_as_tools resources_as_tools load_resources parallel client_roots",
			direction: Loosens, combine: CombineEntry, measure: MeasureSwitch},
		{keys: "replica", direction: Loosens, combine: CombineEntry, measure: MeasureText},
		{keys: "required schema.types schema.formats", direction: Neutral, combine: CombineEntry, measure: MeasureText},
		{keys: "trusted", direction: Loosens, combine: CombineStrictest, measure: MeasureSwitch},
		{keys: "transport command args cwd env env_file url headers config", direction: Loosens,
			combine: CombineEntry, measure: MeasureText},
		{keys: "inherit_env roots", direction: Loosens, combine: CombineEntry, measure: MeasureEntries},
		{keys: "caller_credentials.bearer caller_credentials.sign_in caller_credentials.exchange",
			direction: Loosens, combine: CombineEntry, measure: MeasureSwitch},
		{keys: "caller_credentials.exchange_audience", direction: Loosens, combine: CombineEntry,
			measure: MeasureText},
		{keys: "caller_credentials.headers caller_credentials.env", direction: Loosens, combine: CombineEntry,
			measure: MeasureEntries},
		{keys: "caller_credentials.required", direction: Tightens, combine: CombineEntry, measure: MeasureSwitch},
		{keys: "principals principals.NAME.headers principals.NAME.env", direction: Loosens, combine: CombineEntry,
			measure: MeasureText},
		{keys: "resource_links", direction: Loosens, combine: CombineEntry, measure: MeasureWord, words: "keep fetch"},
		{keys: "request_timeout", direction: Loosens, combine: CombineMin, measure: MeasureNumber},
		{keys: "include", direction: Loosens, combine: CombineEach, measure: MeasureEntries},
		{keys: "exclude", direction: Tightens, combine: CombineUnion, measure: MeasureEntries},
		{keys: "where", direction: Tightens, combine: CombineEach, measure: MeasureText},
		{keys: "transform transform[].hide_params transform[].set_params", direction: Loosens, combine: CombineEntry,
			measure: MeasureAny},
		{keys: "elicitation", direction: Loosens, combine: CombineStrictest, measure: MeasureWord,
			words: "deny client ask"},
		{keys: "sampling", direction: Loosens, combine: CombineStrictest, measure: MeasureWord,
			words: "deny client ask allow"},
		{keys: "sampling_model", direction: Loosens, combine: CombineEntry, measure: MeasureAny},
		{keys: "sampling_limits.max_tokens sampling_limits.per_call sampling_limits.per_minute", direction: Loosens,
			combine: CombineMin, measure: MeasureNumber},
	}},
	{"servers.NAME.auth servers.NAME.principals.NAME.auth", []row{
		{keys: "type secret header grant client_id client_secret private_key assertion scopes issuer",
			direction: Loosens, combine: CombineEntry, measure: MeasureText},
		{keys: "key_id callback_port", direction: Neutral, combine: CombineEntry, measure: MeasureText},
	}},
	{"tools.NAME", []row{
		{keys: "title", direction: Neutral, combine: CombineEntry, measure: MeasureText, fact: "title"},
		{keys: "description", direction: Neutral, combine: CombineEntry, measure: MeasureText, fact: "description"},
		{keys: "defer provider_options", direction: Neutral, combine: CombineEntry, measure: MeasureText},
		{keys: "kind path request.method request.url request.headers request.body template server remote_name",
			direction: Loosens, combine: CombineEntry, measure: MeasureText},
		{keys: "model agent groups", direction: Loosens, combine: CombineEntry, measure: MeasureAny},
		{keys: "request.allow_private", direction: Loosens, combine: CombineEntry, measure: MeasureSwitch},
		{keys: "enabled", direction: Loosens, combine: CombineStrictest, measure: MeasureSwitch},
		{keys: "arguments arguments[].name arguments[].type arguments[].required arguments[].enum schema " +
			"arguments_mode", direction: Loosens, combine: CombineEntry, measure: MeasureAny},
		{keys: "arguments[].description arguments[].default", direction: Neutral, combine: CombineEntry,
			measure: MeasureText},
		{keys: "validate", direction: Loosens, combine: CombineStrictest, measure: MeasureWord,
			words: "error warn off"},
		{keys: "annotations.read_only annotations.idempotent", direction: Loosens, combine: CombineEach,
			measure: MeasureSwitch},
		{keys: "annotations.destructive annotations.open_world", direction: Tightens, combine: CombineEach,
			measure: MeasureSwitch},
		{keys: "states", direction: Loosens, combine: CombineEntry, measure: MeasureEntries},
		{keys: "next_state", direction: Loosens, combine: CombineEntry, measure: MeasureAny},
	}},
	{"models.NAME", []row{
		{keys: "provider api base_url api_key headers path", direction: Loosens, combine: CombineEntry,
			measure: MeasureText},
		{keys: "region profile project auth", direction: Loosens, combine: CombineEntry,
			measure: MeasureText},
		{keys: "model extra tools fallback reasoning service_tier store include modalities voice " +
			"keep_alive uploads", direction: Loosens, combine: CombineEntry, measure: MeasureAny},
		{keys: "temperature top_p timeout tool_mode stop top_k seed verbosity logprobs", direction: Neutral,
			combine: CombineEntry, measure: MeasureText},
		{keys: "max_tokens retries num_ctx context_tokens", direction: Loosens, combine: CombineEntry,
			measure: MeasureNumber},
		{keys: "quirks.max_tokens_field quirks.stream_options quirks.echo_reasoning quirks.images quirks.audio " +
			"quirks.documents quirks.video quirks.addresses quirks.output_schema",
			direction: Neutral, combine: CombineEntry, measure: MeasureText},
		{keys: "quirks.cache quirks.need_reasoning quirks.call_ids quirks.bridge_results quirks.encrypted_reasoning " +
			"quirks.tool_search quirks.stream quirks.text_calls quirks.system_messages quirks.allowed_tools " +
			"quirks.named_choice quirks.json_object",
			direction: Neutral, combine: CombineEntry, measure: MeasureText},
	}},
	{"models.NAME.price", []row{
		{keys: "input output cache_read cache_write searches", direction: Tightens, combine: CombineMax,
			measure: MeasureAny},
		{keys: "above.tokens above.input above.output above.cache_read above.cache_write", direction: Tightens,
			combine: CombineMax, measure: MeasureAny},
	}},
	{"agents.NAME", []row{
		{keys: "description mode additional_context tool_choice data_message_prefix errors.mode errors.column",
			direction: Neutral, combine: CombineEntry, measure: MeasureText},
		{keys: "instructions.text response_format.schema compaction.prompt compaction.at_tokens " +
			"compaction.keep_turns", direction: Neutral, combine: CombineEntry, measure: MeasureText},
		{keys: "compaction.clear_results_at_tokens compaction.keep_results", direction: Neutral,
			combine: CombineEntry, measure: MeasureText},
		{keys: "settings.temperature settings.top_p settings.top_k settings.presence_penalty " +
			"settings.frequency_penalty settings.stop settings.seed settings.verbosity settings.logprobs",
			direction: Neutral, combine: CombineEntry, measure: MeasureText},
		{keys: "settings.max_tokens", direction: Loosens, combine: CombineEntry, measure: MeasureNumber},
		{keys: "settings.reasoning settings.service_tier settings.store settings.include settings.modalities " +
			"settings.voice", direction: Loosens, combine: CombineEntry, measure: MeasureAny},
		{keys: "instructions.file prompt response_format.file", direction: Loosens, combine: CombineEntry,
			measure: MeasureText},
		{keys: "model compaction.model state", direction: Loosens, combine: CombineEntry, measure: MeasureAny},
		{keys: "tools.enabled", direction: Loosens, combine: CombineStrictest, measure: MeasureSwitch},
		{keys: "tools.include", direction: Loosens, combine: CombineEach, measure: MeasureEntries},
		{keys: "tools.exclude", direction: Tightens, combine: CombineUnion, measure: MeasureEntries},
		{keys: "groups handoffs data_inputs provider_tools", direction: Loosens, combine: CombineEntry,
			measure: MeasureEntries},
	}},
}

// declare expands the sections to one declaration for each key of [Config].
func declare() *declarations {
	const most = 600 // a few more than there are keys: a map that grows leaves its smaller tables as garbage
	rows := make(map[string]*row, most)
	eachRow(func(path string, r *row) { rows[path] = r })
	d := &declarations{keys: make([]Key, 0, most), byPath: make(map[string]int, most),
		fields: make(map[string]*field, most), aliases: map[string]string{}, shorts: map[string]string{}}
	eachKey(reflect.TypeFor[Config](), place{}, func(p place, f *field) {
		d.fields[p.pattern] = f
		if f.short {
			d.shorts[strings.TrimSuffix(p.pattern, "."+f.name)] = f.name
		}
		if f.alias != "" {
			d.aliases[strings.TrimSuffix(p.pattern, f.name)+f.alias] = f.name
		}
		r, ok := rows[p.pattern]
		if !ok {
			return
		}
		delete(rows, p.pattern)
		k := Key{Path: p.pattern, Direction: r.direction, Combine: r.combine, Measure: r.measure,
			Words:     strings.Fields(r.words),
			Unlimited: r.unlimited, Least: cmp.Or(r.least, LayerProject), Fact: r.fact}
		d.keys, d.byPath[p.pattern] = append(d.keys, k), len(d.keys)
	})
	d.unused = slices.Sorted(maps.Keys(rows))
	return d
}

// restricted returns the keys that only files of trusted layers may contain, with the least trusted layer that may.
// Unlike [declared], it needs no reflection over the whole configuration, which costs each start a millisecond.
var restricted = sync.OnceValue(func() map[string]Layer {
	least := map[string]Layer{}
	eachRow(func(path string, r *row) {
		if r.least != "" {
			least[path] = r.least
		}
	})
	return least
})

// eachRow calls f with each path of the sections and its row.
func eachRow(f func(path string, r *row)) {
	for _, s := range sections {
		for _, under := range strings.Fields(s.paths) {
			for i := range s.rows {
				for _, key := range strings.Fields(s.rows[i].keys) {
					f(strings.TrimPrefix(under+"."+key, ".."), &s.rows[i])
				}
			}
		}
	}
}

// eachKey calls f for each key of a config struct, in the order of the reference. A value of type secret counts as
// one key, without the keys inside.
func eachKey(t reflect.Type, p place, f func(place, *field)) {
	known := fields(t)
	for i := range known {
		key := &known[i]
		at := p.key(key.name)
		f(at, key)
		typ := key.typ
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		switch {
		case typ == secretType || typ == durationType || typ == rawType:
		case typ.Kind() == reflect.Struct:
			eachKey(typ, at, f)
		case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct:
			eachKey(typ.Elem(), place{at.path + "[]", at.pattern + "[]"}, f)
		case typ.Kind() == reflect.Map && typ.Elem().Kind() == reflect.Struct && typ.Elem() != secretType:
			eachKey(typ.Elem(), at.named("NAME"), f)
		}
	}
}

// isObject reports whether a key only contains other keys, so that it needs no declaration.
func isObject(f field) bool {
	t := f.typ
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && t != secretType
}

// patternOf returns the pattern of a path: names of entries become NAME, indexes [].
func patternOf(path string) string {
	var b strings.Builder
	for path != "" {
		name, rest, _ := strings.Cut(path, ".")
		under := b.String()
		f, isKey := declared().fields[under]
		if under != "" && isKey && f.typ.Kind() == reflect.Map {
			name, rest = "NAME", afterName(path, f.typ.Elem())
		}
		if i := strings.IndexByte(name, '['); i >= 0 {
			name = name[:i] + "[]"
		}
		b.Reset()
		b.WriteString(tree.Join(under, name))
		path = rest
	}
	return b.String()
}

// afterName returns the part of a path after the name of an entry. The name may contain dots: it ends before the
// first key that entries of this type have.
func afterName(path string, entry reflect.Type) string {
	if entry.Kind() != reflect.Struct || entry == secretType {
		return ""
	}
	known := fields(entry)
	for i := range path {
		if path[i] != '.' || i == 0 {
			continue
		}
		key, _, _ := strings.Cut(path[i+1:], ".")
		key, _, _ = strings.Cut(key, "[")
		if slices.ContainsFunc(known, func(f field) bool { return f.name == key }) {
			return path[i+1:]
		}
	}
	return ""
}
