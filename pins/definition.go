package pins

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/internal/rawjson"
	"github.com/tenonhq/tenon/internal/spread"
	"github.com/tenonhq/tenon/policy"
)

// definition is a tool or a server in the form that is pinned.
type definition struct {
	remote string
	json   json.RawMessage // canonical
	digest string
}

// rawDigest returns the digest of the bytes of a list.
func rawDigest(tools []tenon.Tool) string {
	sum := sha256.New()
	for i := range tools {
		sum.Write(tools[i].Raw)
		sum.Write([]byte{'\n'})
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// definitions returns the pinned form of tools. Several tools with the same name become one definition.
func definitions(tools []tenon.Tool) ([]definition, error) {
	type defined struct {
		list []definition
		err  error
	}
	list := make([]definition, 0, len(tools))
	at := make(map[string]int, len(tools))
	for _, part := range spread.Map(tools, worthCore, func(_ int, part []tenon.Tool) (d defined) {
		d.list, d.err = definitionsOf(part)
		return d
	}) {
		if part.err != nil {
			return nil, part.err
		}
		for _, d := range part.list {
			if j, twice := at[d.remote]; twice {
				both, err := define(d.remote, tenon.EventData([]json.RawMessage{list[j].json, d.json}))
				if err != nil {
					return nil, err
				}
				list[j] = both
				continue
			}
			at[d.remote] = len(list)
			list = append(list, d)
		}
	}
	return list, nil
}

// worthCore is the number of definitions from which on another core saves time.
const worthCore = 256

// definitionsOf returns the pinned form of tools, one by one.
func definitionsOf(tools []tenon.Tool) ([]definition, error) {
	list := make([]definition, len(tools))
	for i := range tools {
		raw := tools[i].Raw
		if len(raw) == 0 {
			raw = tenon.EventData(&tools[i])
		}
		var err error
		if list[i], err = define(tools[i].Remote, raw); err != nil {
			return nil, tenon.Errorf(tenon.CodeProtocol, "tool '%s': its definition cannot be read: %w",
				tools[i].Remote, err)
		}
	}
	return list, nil
}

// Digest returns the digest of a tool's definition, or "" if it is not valid JSON.
func Digest(remote string, raw json.RawMessage) string {
	d, err := define(remote, raw)
	if err != nil {
		return ""
	}
	return d.digest
}

// define returns the canonical form of a definition. Lists that are sets are sorted.
func define(remote string, raw json.RawMessage) (definition, error) {
	// Fast path: most definitions need not be decoded.
	canonical, ok := rawjson.AppendSorted(make([]byte, 0, len(raw)), raw,
		func(key []byte) bool { return isSet(string(key)) })
	if !ok {
		var err error
		if canonical, err = canonicalDecoded(raw); err != nil {
			return definition{}, err
		}
	}
	sum := sha256.Sum256(canonical)
	return definition{remote: remote, json: canonical, digest: "sha256:" + hex.EncodeToString(sum[:])}, nil
}

// canonicalDecoded returns the canonical form of any JSON.
func canonicalDecoded(raw json.RawMessage) ([]byte, error) {
	v, err := policy.Decoded(raw)
	if err != nil {
		return nil, err
	}
	sortSets(v, 0)
	return tenon.EventData(v), nil
}

// numbered decodes valid JSON and keeps numbers as they are written.
func numbered(raw json.RawMessage) any {
	var v any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	_ = d.Decode(&v) // raw is valid JSON
	return v
}

// isSet reports whether the list under a key is a set.
func isSet(key string) bool { return key == "required" || key == "enum" || key == "type" }

// maxSets bounds the depth of lists that are treated as sets.
const maxSets = 64

func sortSets(v any, depth int) {
	if depth > maxSets {
		return
	}
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			sortSets(e, depth+1)
		}
	case map[string]any:
		for k, e := range v {
			if list, ok := e.([]any); ok && isSet(k) {
				slices.SortFunc(list, func(a, b any) int {
					return bytes.Compare(tenon.EventData(a),
						tenon.EventData(b))
				})
			}
			sortSets(e, depth+1)
		}
	}
}
