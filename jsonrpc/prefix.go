package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/tenonhq/tenon/internal/rawjson"
)

// ScanID finds an id at the top level of a truncated or refused message. The id must be an integer, as this package
// makes them. It identifies the call that the message would have answered. ScanID reports false if there is no such id,
// or if the message is a request.
func ScanID(prefix []byte) (int64, bool) {
	id, request := scanEnvelope(prefix)
	if request {
		return 0, false
	}
	return ownID(id)
}

// scanRequest returns the id of a truncated or refused request from the other side, so that it can be
// answered. It returns nil if there is none.
func scanRequest(prefix []byte) []byte {
	id, request := scanEnvelope(prefix)
	if !request || len(id) == 0 || len(id) > maxForeignID || id[0] == '{' || id[0] == '[' ||
		!utf8.Valid(id) || !json.Valid(id) {
		return nil
	}
	return id
}

// maxForeignID bounds the id of an unreadable request that is answered, in bytes.
const maxForeignID = 256

// scanEnvelope returns the raw id of a truncated or refused message and reports whether it has a method. The
// id is nil if it is missing, cut off or duplicated.
func scanEnvelope(prefix []byte) (id []byte, method bool) {
	if !rawjson.IsObject(prefix) {
		return nil, false
	}
	twice := false
	for t := range rawjson.Strings(prefix) {
		if t.Value < 0 || t.Depth != 1 {
			continue
		}
		switch string(rawjson.Key(prefix[t.From:t.To])) {
		case "method":
			method = true
		case "id":
			if end := rawjson.End(prefix, t.Value); end < len(prefix) {
				twice = twice || id != nil
				id = prefix[t.Value:end]
			}
		}
	}
	if twice {
		return nil, method
	}
	return id, method
}

// ownID parses an id in the form that this package makes: an integer. It also accepts a string that contains one (W15),
// and an integral number with a fraction (1.0), because some implementations have only floating-point numbers.
func ownID(raw []byte) (int64, bool) {
	if len(raw) > 2 && raw[0] == '"' {
		raw = raw[1 : len(raw)-1]
	} else if whole, zeros, ok := bytes.Cut(raw, []byte{'.'}); ok && len(bytes.Trim(zeros, "0")) == 0 {
		raw = whole
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil && len(raw) > 0 && raw[0] != '+' && n > 0
}
