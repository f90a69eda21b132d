package testserver

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// faults returns the catalogue of faults.
func faults() []fault {
	all := []fault{
		// Missing and incomplete responses.
		{name: "silent", says: "never answers", reply: func(_ wire, a *right) { <-a.ctx.Done() }},
		{name: "late", says: "answers after 3 s", reply: func(w wire, a *right) {
			if pause(a.ctx, 3*time.Second) {
				w.message(a.answer)
			}
		}},
		{name: "drop", says: "ends the connection before the answer", reply: func(w wire, _ *right) { w.drop() }},
		{name: "drop-half", says: "ends the connection in the middle of the answer",
			reply: func(w wire, a *right) { w.raw(a.answer[:len(a.answer)/2]); w.drop() }},
		{name: "drop-after", says: "ends the connection right after the answer",
			reply: func(w wire, a *right) { w.message(a.answer); pause(a.ctx, 20*time.Millisecond); w.drop() }},
		{name: "drip", says: "sends a byte every 20 ms", reply: func(w wire, a *right) {
			for i := range a.answer {
				w.raw(a.answer[i : i+1])
				if !pause(a.ctx, 20*time.Millisecond) {
					return
				}
			}
			w.raw([]byte("\n"))
		}},
		// Bytes that are not a message.
		one("garbage", "a line that is no JSON instead of the answer",
			func(*right) []byte { return []byte("Segmentation fault \x1b[31m(core dumped)\x1b[0m") }),
		{name: "garbage-first", says: "lines that are no JSON before the answer", reply: func(w wire, a *right) {
			for range 20 {
				w.message([]byte("debug: {\"half\": "))
			}
			w.message(a.answer)
		}},
		{name: "garbage-flood", says: "20,000 lines that are no JSON", reply: func(w wire, _ *right) {
			for range 20_000 {
				w.message([]byte("loading..."))
			}
		}},
		one("blank", "blank instead of the answer", func(*right) []byte { return []byte("  \t ") }),
		one("truncated", "the first half of the answer as a message",
			func(a *right) []byte { return a.answer[:len(a.answer)/2] }),
		one("trailing", "an answer with more behind it",
			func(a *right) []byte { return append(bytes.Clone(a.answer), " trailing"...) }),
		one("two-in-one", "two answers in one message",
			func(a *right) []byte { return append(bytes.Clone(a.answer), a.answer...) }),
		one("bom", "a byte order mark before the answer",
			func(a *right) []byte { return append([]byte("\xef\xbb\xbf"), a.answer...) }),
		one("crlf", "a carriage return behind the answer",
			func(a *right) []byte { return append(bytes.Clone(a.answer), '\r') }),
		one("not-utf8", "text that is not UTF-8", func(a *right) []byte { return a.extra("\"x\":\"\xff\xfe\"") }),
		one("nul", "a NUL byte in the answer", func(a *right) []byte { return a.extra("\"x\":\"\x00\"") }),
		one("nul-escaped", "an escaped NUL in the answer", func(a *right) []byte { return a.extra(`"x":"\u0000"`) }),
		one("lone-surrogate", "half of a surrogate pair", func(a *right) []byte { return a.extra(`"x":"\ud800"`) }),
		one("nan", "a number that JSON has not", func(a *right) []byte { return a.extra(`"x":NaN`) }),
		one("number-huge", "a number of 10,000 digits",
			func(a *right) []byte { return a.extra(`"x":` + strings.Repeat("9", 10_000)) }),
		one("single-quotes", "quotes that JSON has not",
			func(a *right) []byte { return bytes.ReplaceAll(a.answer, []byte{'"'}, []byte{'\''}) }),
		one("comment", "a comment in the JSON", func(a *right) []byte { return a.extra(`/* hi */"x":1`) }),
		// JSON that is not a JSON-RPC response, or not to this request.
		one("scalar", "a bare number", func(*right) []byte { return []byte("42") }),
		one("null", "null", func(*right) []byte { return []byte("null") }),
		one("empty-object", "an empty object", func(*right) []byte { return []byte("{}") }),
		one("empty-batch", "an empty array", func(*right) []byte { return []byte("[]") }),
		one("batch", "the answer in an array", func(a *right) []byte { return []byte("[" + string(a.answer) + "]") }),
		one("version-missing", "no member jsonrpc",
			func(a *right) []byte { return bytes.Replace(a.answer, []byte(`"jsonrpc":"2.0",`), nil, 1) }),
		one("version-wrong", "JSON-RPC 1.0",
			func(a *right) []byte { return bytes.Replace(a.answer, []byte(`"2.0"`), []byte(`"1.0"`), 1) }),
		one("key-case", "members in capital letters", func(a *right) []byte {
			b := bytes.Replace(a.answer, []byte(`"result"`), []byte(`"Result"`), 1)
			return bytes.Replace(b, []byte(`"id"`), []byte(`"ID"`), 1)
		}),
		one("key-twice", "the result twice", func(a *right) []byte {
			return []byte(`{"jsonrpc":"2.0","id":` + string(a.id) + `,"result":{"content":[]},"result":` +
				a.result() + `}`)
		}),
		one("key-twice-inside", "a member of the result twice",
			func(a *right) []byte { return a.extra(`"isError":true,"isError":false`) }),
		one("id-text", "the id as a text", func(a *right) []byte { return a.id2(`"` + string(a.id) + `"`) }),
		one("id-float", "the id as 1.0", func(a *right) []byte { return a.id2(string(a.id) + ".0") }),
		one("id-other", "an id that was never sent", func(a *right) []byte { return a.id2("987654321") }),
		one("id-null", "the id null", func(a *right) []byte { return a.id2("null") }),
		one("id-object", "an object as the id", func(a *right) []byte { return a.id2("{}") }),
		one("id-huge", "an id that no integer holds",
			func(a *right) []byte { return a.id2("123456789012345678901234567890") }),
		one("id-missing", "no id",
			func(a *right) []byte { return []byte(`{"jsonrpc":"2.0","result":` + a.result() + `}`) }),
		one("result-missing", "neither result nor error",
			func(a *right) []byte { return []byte(`{"jsonrpc":"2.0","id":` + string(a.id) + `}`) }),
		one("result-null", "the result null", func(a *right) []byte { return a.with("null") }),
		one("result-text", "a text as the result", func(a *right) []byte { return a.with(`"ok"`) }),
		one("result-array", "an array as the result", func(a *right) []byte { return a.with("[]") }),
		one("result-empty", "an empty object as the result", func(a *right) []byte { return a.with("{}") }),
		one("result-and-error", "a result and an error", func(a *right) []byte {
			return []byte(`{"jsonrpc":"2.0","id":` + string(a.id) + `,"result":` + a.result() +
				`,"error":{"code":1,"message":"both"}}`)
		}),
		one("error-null", "the error null", func(a *right) []byte { return a.err("null") }),
		one("error-text", "a text as the error", func(a *right) []byte { return a.err(`"it failed"`) }),
		one("error-empty", "an error without code and message", func(a *right) []byte { return a.err("{}") }),
		one("error-code-text", "a text as the code of an error",
			func(a *right) []byte { return a.err(`{"code":"E42","message":"no"}`) }),
		one("error-huge", "an error with a message of 1 MB",
			func(a *right) []byte { return a.err(`{"code":-1,"message":"` + strings.Repeat("no ", 333_000) + `"}`) }),
		one("error-ansi", "an error that writes to the terminal",
			func(a *right) []byte { return a.err(`{"code":-1,"message":"\u001b[2J\u001b]0;owned\u0007\u202egone"}`) }),
		// Additional and unsolicited messages.
		{name: "twice", says: "the answer twice",
			reply: func(w wire, a *right) { w.message(a.answer); w.message(a.answer) }},
		{name: "requests-unknown", says: "requests of a method that nobody knows, before the answer", on: streams,
			reply: func(w wire, a *right) {
				for i := range 300 {
					w.message(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":"s%d","method":"evil/run","params":{}}`, i))
				}
				w.message(a.answer)
			}},
		{name: "pings", says: "5,000 pings before the answer", on: streams, reply: func(w wire, a *right) {
			for i := range 5000 {
				w.message(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`, 1_000_000+i))
			}
			w.message(a.answer)
		}},
		{name: "progress-flood", says: "200,000 notices of progress before the answer", on: withNotices,
			reply: func(w wire, a *right) {
				token := rawjson.Field(rawjson.Field(a.params, "_meta"), "progressToken")
				if token == nil {
					token = []byte("1")
				}
				for i := range 200_000 {
					w.message(fmt.Appendf(nil,
						`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,`+
							`"progress":%d}}`, token, i))
				}
				w.message(a.answer)
			}},
		{name: "changed-flood", says: "20,000 notices that the tools changed", on: withNotices,
			reply: func(w wire, a *right) {
				for range 20_000 {
					w.message([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
				}
				w.message(a.answer)
			}},
		{name: "log-flood", says: "20,000 log messages", on: withNotices, reply: func(w wire, a *right) {
			const noise = `{"jsonrpc":"2.0","method":"notifications/message",` +
				`"params":{"level":"error","data":"\u001b[31mnoise"}}`
			for range 20_000 {
				w.message([]byte(noise))
			}
			w.message(a.answer)
		}},
		{name: "notice-odd", says: "notices with params that are none", on: withNotices, reply: func(w wire, a *right) {
			for _, m := range []string{"progress", "message", "cancelled", "tools/list_changed",
				"resources/updated", ""} {
				for _, p := range []string{"null", "[]", `"x"`, "1", `{"progressToken":{}}`} {
					w.message([]byte(`{"jsonrpc":"2.0","method":"notifications/` + m + `","params":` + p + `}`))
				}
			}
			w.message(a.answer)
		}},
		// Sizes.
		one("huge", "an answer of 24 MB, over the limit",
			func(a *right) []byte { return a.extra(`"x":"` + strings.Repeat("a", 24<<20) + `"`) }),
		one("deep", "JSON of 200,000 levels", func(a *right) []byte {
			return a.extra(`"x":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000))
		}),
		one("keys", "an object of 100,000 members", func(a *right) []byte {
			b := []byte(`"x":{"k":0`)
			for i := range 100_000 {
				b = fmt.Appendf(b, `,"k%d":0`, i)
			}
			return a.extra(string(b) + "}")
		}),
	}
	all = append(all, meaningFaults()...)
	all = append(all, httpFaults()...)
	all = append(all, sseFaults()...)
	all = append(all, socketFaults()...)
	return append(all, processFaults()...)
}

var (
	streams     = []string{"stdio", "sse", "ws"}
	withNotices = []string{"stdio", "http", "sse", "ws"}
)

// one returns a fault that replaces the response with one message.
func one(name, says string, f func(a *right) []byte) fault {
	return fault{name: name, says: says, reply: func(w wire, a *right) { w.message(f(a)) }}
}

// only limits a fault to a method. Other methods get the correct response.
func only(method string, f fault) fault {
	reply := f.reply
	f.reply = func(w wire, a *right) {
		if a.method != method {
			w.message(a.answer)
			return
		}
		reply(w, a)
	}
	return f
}

// id2 returns the response with another id.
func (a *right) id2(id string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":` + id + `,"result":` + a.result() + `}`)
}

// err returns an error response.
func (a *right) err(e string) []byte {
	return []byte(`{"jsonrpc":"2.0","id":` + string(a.id) + `,"error":` + e + `}`)
}

// meaningFaults returns responses that are valid JSON-RPC but violate MCP.
func meaningFaults() []fault {
	var pages int
	list := func(name, says, result string) fault {
		return only("tools/list", one(name, says, func(a *right) []byte { return a.with(result) }))
	}
	call := func(name, says, result string) fault {
		return only("tools/call", one(name, says, func(a *right) []byte { return a.with(result) }))
	}
	return []fault{
		only("initialize", one("version-unknown", "a protocol version that does not exist",
			func(a *right) []byte { return a.with(`{"protocolVersion":"1999-01-01","capabilities":{}}`) })),
		only("initialize", one("version-number", "a number as the protocol version", func(a *right) []byte {
			return a.with(`{"protocolVersion":20251125,"capabilities":null,"serverInfo":[]}`)
		})),
		list("tools-missing", "a list without tools", `{"nextCursor":null}`),
		list("tools-object", "an object as the list of tools", `{"tools":{}}`),
		list("tools-broken", "tools that are none",
			`{"tools":[null,1,"x",[],{},{"name":""},{"name":7},{"name":"a"},{"name":"b","inputSchema":null},`+
				`{"name":"c","inputSchema":{"type":"string"}},{"name":"d","inputSchema":true,"annotations":[]}]}`),
		list("tools-same", "ten tools of one name", `{"tools":[`+
			strings.TrimSuffix(strings.Repeat(`{"name":"same","inputSchema":{"type":"object"}},`, 10), ",")+`]}`),
		only("tools/list", one("tools-many", "50,000 tools on a page", func(a *right) []byte {
			b := []byte(`{"tools":[`)
			for i := range 50_000 {
				b = fmt.Appendf(b, `{"name":"t%d","inputSchema":{"type":"object"}},`, i)
			}
			return a.with(string(b[:len(b)-1]) + "]}")
		})),
		list("cursor-same", "the same cursor for ever", `{"tools":[],"nextCursor":"again"}`),
		only("tools/list", one("cursor-endless", "always another page", func(a *right) []byte {
			pages++
			return a.with(fmt.Sprintf(`{"tools":[],"nextCursor":"p%d"}`, pages))
		})),
		list("cursor-number", "a number as the cursor, and the list again", `{"tools":[],"nextCursor":1}`),
		list("name-ansi", "a tool whose name writes to the terminal",
			`{"tools":[{"name":"\u001b[2Jrm","description":"\u202eevil","inputSchema":{"type":"object"}}]}`),
		list("name-long", "a tool with a name of 100,000 letters", `{"tools":[{"name":"`+strings.Repeat("n", 100_000)+
			`","inputSchema":{"type":"object"}}]}`),
		call("content-object", "an object as the content", `{"content":{}}`),
		call("content-null", "the content null", `{"content":null}`),
		call("content-odd", "blocks that are none",
			`{"content":[null,1,"x",[],{},{"type":7},{"type":"text"},{"type":"image","data":7}]}`),
		call("error-odd", "isError that is no truth value", `{"content":[],"isError":"yes"}`),
		call("type-unknown", "a result of a type that nobody knows", `{"resultType":"teapot","content":[]}`),
		call("type-task", "a task that was not agreed on", `{"resultType":"task","taskId":"t1","status":"working"}`),
		call("input-nothing", "wants input and does not say which", `{"resultType":"input_required"}`),
	}
}
