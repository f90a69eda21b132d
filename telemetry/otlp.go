package telemetry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tenonhq/tenon"
)

// The format is OTLP over HTTP in JSON (opentelemetry-proto 1.x): 64-bit integers are strings, ids are
// hexadecimal.

type (
	object = map[string]any
	array  = []any
)

// post sends a body. A response status other than 2xx is an error.
func (c *Collector) post(path string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, strings.TrimSuffix(c.cfg.Endpoint, "/")+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	for k, v := range c.cfg.Headers {
		req.Header.Set(k, v)
	}
	res, err := c.cfg.Client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<16)) // allows reuse of the connection
	if res.StatusCode/100 != 2 {
		return tenon.Errorf(tenon.CodeUnreachable, "the collector answered with status %d", res.StatusCode)
	}
	return nil
}

func value(v any) object {
	switch v := v.(type) {
	case int:
		return object{"intValue": strconv.Itoa(v)}
	case bool:
		return object{"boolValue": v}
	case []string:
		list := array{}
		for _, s := range v {
			list = append(list, object{"stringValue": s})
		}
		return object{"arrayValue": object{"values": list}}
	case string:
		return object{"stringValue": strings.ToValidUTF8(v, "�")}
	}
	return object{}
}

func attributes(list []Attr) array {
	out := array{}
	for _, a := range list {
		if a.Value != "" {
			out = append(out, object{"key": a.Key, "value": value(a.Value)})
		}
	}
	return out
}

func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }

func (c *Collector) resource() object {
	return object{"attributes": attributes([]Attr{{attrService, cmp.Or(c.cfg.Service, "tenon")},
		{attrVersion, c.cfg.Version}})}
}

func scope() object { return object{"name": "github.com/tenonhq/tenon"} }

func (c *Collector) tracesBody(batch []Span) object {
	list := array{}
	for _, s := range batch {
		o := object{"traceId": s.Trace, "spanId": s.ID, "name": s.Name, "kind": s.Kind,
			"startTimeUnixNano": nanos(firstOf(s.Start, s.End)), "endTimeUnixNano": nanos(s.End),
			"attributes": attributes(s.Attrs)}
		if s.Parent != "" {
			o["parentSpanId"] = s.Parent
		}
		if s.Error != "" {
			o["attributes"] = attributes(append(s.Attrs[:len(s.Attrs):len(s.Attrs)], Attr{attrError, s.Error}))
			o["status"] = object{"code": 2, "message": s.Error}
		}
		list = append(list, o)
	}
	return object{"resourceSpans": array{object{"resource": c.resource(),
		"scopeSpans": array{object{"scope": scope(), "spans": list}}}}}
}

// metricsBody returns the metrics that the conventions define.
func (c *Collector) metricsBody() object {
	c.Metrics.mu.Lock()
	defer c.Metrics.mu.Unlock()
	now := nanos(time.Now())
	list := array{}
	for _, f := range c.families {
		if f.otel == "" || len(f.series) == 0 {
			continue
		}
		points := array{}
		for _, s := range f.series {
			attrs := []Attr{{attrOperation, f.fixed}}
			for i, name := range f.attrs {
				attrs = append(attrs, Attr{name, s.labels[i]})
			}
			counts := array{}
			sum := uint64(0)
			for _, n := range s.counts {
				counts = append(counts, strconv.FormatUint(n, 10))
				sum += n
			}
			counts = append(counts, strconv.FormatUint(s.count-sum, 10))
			points = append(points, object{"attributes": attributes(attrs),
				"startTimeUnixNano": nanos(c.began), "timeUnixNano": now,
				"count": strconv.FormatUint(s.count, 10), "sum": s.value,
				"bucketCounts": counts, "explicitBounds": f.buckets})
		}
		list = append(list, object{"name": f.otel, "unit": f.unit, "description": f.help,
			"histogram": object{"aggregationTemporality": 2, "dataPoints": points}})
	}
	return object{"resourceMetrics": array{object{"resource": c.resource(),
		"scopeMetrics": array{object{"scope": scope(), "metrics": list}}}}}
}
