package agent

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
)

// Each turn has events of four kinds whose data the core needs: a start, an answer, a decision, a result. The functions
// below read the usual forms of this data. Data with a rare member, or with a member of another type, is left to
// encoding/json as a whole. Figure P5.memory needs this: with encoding/json only, a turn took 90 µs instead of 83 µs
// (goal: at most 100 µs; medians of 5 interleaved rounds).

// readable are the limits of data that is read without encoding/json.
var readable = rawjson.Rules{Values: 1 << 20, Depth: 1000}

// reader is data that can read itself from valid JSON. read returns false if encoding/json must read it instead. Raw
// JSON in the data shares the memory of raw.
type reader interface{ read(raw []byte) bool }

// decode reads the data of an event.
func decode[T any](e tenon.Event, v *T) error {
	if local, ok := e.Local.(*T); ok {
		*v = *local
		return nil
	}
	if len(e.Data) == 0 {
		return nil
	}
	if r, ok := any(v).(reader); ok && rawjson.Check(e.Data, readable) == nil {
		before := *v
		if r.read(e.Data) {
			return nil
		}
		*v = before
	}
	if err := json.Unmarshal(e.Data, v); err != nil {
		return tenon.Errorf(tenon.CodeStore, "run %s: event %d (%s) cannot be read: %w", e.Run, e.Seq, e.Kind, err)
	}
	return nil
}

func (a *Answered) read(raw []byte) bool {
	return eachMember(raw, func(key, v []byte) bool {
		switch string(key) {
		case "message":
			a.Message = new(tenon.Message)
			return readMessage(v, a.Message)
		case "stop":
			return readText(v, &a.Stop)
		case "raw_stop":
			return readText(v, &a.RawStop)
		case "usage":
			a.Usage = new(tenon.Usage)
			return readUsage(v, a.Usage)
		case "cost":
			a.Cost = new(tenon.USD)
			return !rawjson.IsNull(v) && a.Cost.UnmarshalJSON(v) == nil
		case "model":
			return readText(v, &a.Model)
		case "id":
			return readText(v, &a.ID)
		}
		return false
	})
}

func readMessage(raw []byte, m *tenon.Message) bool {
	return eachMember(raw, func(key, v []byte) bool {
		switch string(key) {
		case "role":
			return readText(v, &m.Role)
		case "by":
			return readText(v, &m.By)
		case "parts":
			if v[0] != '[' {
				return false
			}
			m.Parts = []tenon.Part{}
			for one := range rawjson.Elements(v) {
				m.Parts = append(m.Parts, tenon.Part{})
				if !readPart(one, &m.Parts[len(m.Parts)-1]) {
					return false
				}
			}
			return true
		}
		return false
	})
}

func readPart(raw []byte, p *tenon.Part) bool {
	return eachMember(raw, func(key, v []byte) bool {
		switch string(key) {
		case "type":
			return readText(v, &p.Type)
		case "text":
			return readText(v, &p.Text)
		case "call":
			p.Call = new(tenon.ToolCall)
			return readCall(v, p.Call)
		case "wire":
			return readText(v, &p.Wire)
		case "raw":
			p.Raw = slices.Clip(json.RawMessage(v))
			return true
		}
		return false
	})
}

func readCall(raw []byte, c *tenon.ToolCall) bool {
	return eachMember(raw, func(key, v []byte) bool {
		switch string(key) {
		case "id":
			return readText(v, &c.ID)
		case "name":
			return readText(v, &c.Name)
		case "arguments":
			c.Arguments = slices.Clip(json.RawMessage(v))
			return true
		}
		return false
	})
}

func readUsage(raw []byte, u *tenon.Usage) bool {
	return eachMember(raw, func(key, v []byte) bool {
		switch string(key) {
		case "input_tokens":
			return readWhole(v, &u.Input)
		case "output_tokens":
			return readWhole(v, &u.Output)
		case "cache_read_tokens":
			return readWhole(v, &u.CacheRead)
		case "cache_write_tokens":
			return readWhole(v, &u.CacheWrite)
		case "reasoning_tokens":
			return readWhole(v, &u.Reasoning)
		case "searches":
			return readWhole(v, &u.Searches)
		}
		return false
	})
}

func (d *Decision) read(raw []byte) bool {
	return eachMember(raw, func(key, v []byte) bool {
		switch string(key) {
		case "verdict":
			return readText(v, &d.Verdict)
		case "kind":
			return readText(v, &d.Kind)
		case "by":
			return readText(v, &d.By)
		case "reason":
			return readText(v, &d.Reason)
		case "policy":
			return readText(v, &d.Policy)
		case "tool_kind":
			return readText(v, &d.ToolKind)
		case "server":
			return readText(v, &d.Server)
		case "remote_name":
			return readText(v, &d.Remote)
		case "arguments":
			d.Arguments = slices.Clip(json.RawMessage(v))
			return true
		case "idempotent":
			return readFlag(v, &d.Idempotent)
		case "timeout":
			return readWhole(v, &d.Timeout)
		case "expires":
			return readWhole(v, &d.Expires)
		case "max_calls":
			return readWhole(v, &d.MaxCalls)
		case "rate":
			return readText(v, &d.Rate)
		case "server_identity":
			return readText(v, &d.Identity)
		case "target":
			return readText(v, &d.Target)
		case "output":
			return readText(v, &d.Output)
		}
		return false
	})
}

func (o *Outcome) read(raw []byte) bool {
	return eachMember(raw, func(key, v []byte) bool {
		switch string(key) {
		case "result":
			o.Result = new(tenon.Result)
			return v[0] == '{' && o.Result.UnmarshalJSON(v) == nil
		case "source":
			return readText(v, &o.Source)
		case "of":
			return readText(v, &o.Of)
		case "duration_ns":
			return readWhole(v, &o.Duration)
		}
		return false
	})
}

// started is the data of a start.
type started struct{ tenon.StartedData }

func (s *started) read(raw []byte) bool {
	return eachMember(raw, func(key, v []byte) bool {
		switch string(key) {
		case "kind":
			return readText(v, &s.Kind)
		case "idempotent":
			return readFlag(v, &s.Idempotent)
		}
		return false
	})
}

// eachMember calls take for each member of an object until it returns false. It reports whether all members were
// taken.
func eachMember(raw []byte, take func(key, v []byte) bool) bool {
	if len(raw) == 0 || raw[0] != '{' {
		return false
	}
	for key, v := range rawjson.Fields(raw) {
		if !take(key, v) {
			return false
		}
	}
	return true
}

func readText[S ~string](v []byte, into *S) bool {
	*into = S(rawjson.String(v))
	return v[0] == '"'
}

func readFlag(v []byte, into *bool) bool {
	*into = v[0] == 't'
	return v[0] == 't' || v[0] == 'f'
}

func readWhole[N ~int | ~int64](v []byte, into *N) bool {
	n, err := strconv.ParseInt(string(v), 10, strconv.IntSize)
	*into = N(n)
	return err == nil
}
