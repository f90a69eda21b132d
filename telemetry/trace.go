package telemetry

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// TraceID returns the trace id of a run. Runs called by a run belong to the trace of the root run.
func TraceID(run string) string {
	sum := sha256.Sum256([]byte("trace/" + tenon.RootRun(run)))
	return hex.EncodeToString(sum[:16])
}

// SpanID returns the span id of a part of a run. An empty part denotes the run itself.
func SpanID(run, part string) string {
	sum := sha256.Sum256([]byte("span/" + run + "#" + part))
	return hex.EncodeToString(sum[:8])
}

// TraceParent returns the trace context that is sent to a server with the call of a step (W3C Trace Context;
// in MCP _meta.traceparent, SEP-414).
func TraceParent(run, step string) string {
	return "00-" + TraceID(run) + "-" + SpanID(run, step+"/call") + "-01"
}

// The kinds of a span (OTLP).
const (
	kindInternal = 1
	kindClient   = 3
)

// Span is one OTLP span.
type Span struct {
	Trace, ID, Parent string
	Name              string
	Kind              int
	Start, End        time.Time
	Attrs             []Attr
	Error             string
}

// Attr is an attribute: a string, an int, a bool or a list of strings.
type Attr struct {
	Key   string
	Value any
}

// spans returns the spans of an ended step, parents first. For a tool call the order is: the whole call, policy,
// limits, cache, timeout, and the request to the server. A stage that did not happen has no span. For example, a denied
// call has no span after policy, and a cached result has no timeout and no request.
func spans(e *Ended) []Span {
	run := e.Run
	base := Span{Trace: TraceID(run.ID), Parent: SpanID(run.ID, ""), Start: e.Started, End: e.End, Kind: kindInternal,
		Error: e.Error,
		Attrs: []Attr{{attrConversation, run.Session}, {attrSession, run.Session}, {attrUser, string(run.Principal)},
			{attrRun, run.ID}}}
	switch {
	case e.Step == "":
		base.ID, base.Name, base.Parent = SpanID(run.ID, ""), strings.TrimSpace(opAgent+" "+run.Agent), ""
		if run.Caller != "" {
			base.Parent = SpanID(run.Caller, strings.TrimPrefix(run.ID, run.Caller+"/"))
		}
		base.Attrs = append(base.Attrs, Attr{attrOperation, opAgent}, Attr{attrAgent, run.Agent},
			Attr{attrModel, run.Model}, Attr{attrState, string(run.State)})
		return []Span{base}
	case !e.IsTool():
		base.ID, base.Name, base.Kind = SpanID(run.ID, e.Step+"/"+strconv.FormatInt(e.Started.UnixNano(), 36)),
			opChat+" "+run.Model, kindClient
		provider, _, _ := strings.Cut(run.Model, "/")
		base.Attrs = append(base.Attrs, Attr{attrOperation, opChat}, Attr{attrModel, run.Model},
			Attr{attrProvider, provider}, Attr{attrStep, e.Step})
		if e.Stop != "" {
			base.Attrs = append(base.Attrs, Attr{attrFinish, []string{e.Stop}})
		}
		if u := e.Usage; u != nil {
			base.Attrs = append(base.Attrs, Attr{attrInput, u.Input}, Attr{attrOutput, u.Output},
				Attr{attrCacheRead, u.CacheRead}, Attr{attrReasoning, u.Reasoning})
		}
		return []Span{base}
	}
	return toolSpans(e, base)
}

func toolSpans(e *Ended, base Span) []Span {
	run := e.Run.ID
	call := base
	call.ID, call.Name = SpanID(run, e.Step), opTool+" "+e.Name
	call.Start = firstOf(e.Proposed, e.Decided, e.Started, e.End)
	call.Attrs = append(call.Attrs[:len(call.Attrs):len(call.Attrs)], Attr{attrOperation, opTool},
		Attr{attrTool, e.Name}, Attr{attrServer, e.Server}, Attr{attrStep, e.Step})
	identity := func(s *Span) {
		if e.Identity != "" {
			s.Attrs = append(s.Attrs, Attr{attrID, e.Identity})
		}
	}
	identity(&call)
	if e.ID != "" {
		call.Attrs = append(call.Attrs, Attr{attrToolCall, e.ID})
	}
	part := func(name, parent string, from, to time.Time, attrs ...Attr) Span {
		return Span{Trace: base.Trace, ID: SpanID(run, e.Step+"/"+name), Parent: parent, Name: name, Kind: kindInternal,
			Start: from, End: to, Attrs: attrs}
	}
	decided := firstOf(e.Decided, call.Start)
	list := []Span{call, part("policy", call.ID, call.Start, decided, Attr{attrVerdict, string(e.Verdict)},
		Attr{attrBy, e.By})}
	if e.Verdict == tenon.Deny {
		return list
	}
	started := firstOf(e.Started, e.End)
	list = append(list, part("limits", call.ID, decided, started))
	if e.Cache {
		list = append(list, part("cache", call.ID, started, started, Attr{attrHit, e.Hit}))
	}
	if e.Hit || e.Started.IsZero() {
		return list
	}
	parent := call.ID
	if e.Limited {
		list = append(list, part("timeout", parent, started, e.End))
		parent = list[len(list)-1].ID
	}
	request := part("call", parent, started, e.End, Attr{attrMethod, "tools/call"}, Attr{attrTool, e.Remote},
		Attr{attrServer, e.Server})
	identity(&request)
	request.Name, request.Kind, request.Error = "tools/call "+e.Remote, kindClient, e.Error
	return append(list, request)
}

// firstOf returns the first non-zero time.
func firstOf(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}
