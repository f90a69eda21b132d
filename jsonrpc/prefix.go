package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// ScanID looks for our own kind of id, an integer, at the top level of a
// message that is cut off or refused, so that the call it would have answered
// can be told. It reports false where none is seen, or where the message is
// a request of the peer.
func ScanID(prefix []byte) (int64, bool) {
	id, request := scanEnvelope(prefix)
	if request {
		return 0, false
	}
	return ownID(id)
}

// scanRequest looks for the id of a request of the other side in a message that
// is cut off or refused, so that it can be answered. Nil: there is none.
func scanRequest(prefix []byte) []byte {
	id, request := scanEnvelope(prefix)
	if !request || len(id) == 0 || len(id) > maxForeignID || !utf8.Valid(id) || !json.Valid(id) || id[0] == '{' || id[0] == '[' {
		return nil
	}
	return id
}

// maxForeignID bounds the id that an unreadable request is answered under.
const maxForeignID = 256

// scanEnvelope looks for the id of a message that is cut off or refused, raw, and
// whether it has a method. An id that stands twice is none.
func scanEnvelope(prefix []byte) (id []byte, method bool) {
	s := newScanner(prefix)
	defer s.free()
	i := s.space(0)
	if i >= len(prefix) || prefix[i] != '{' {
		return nil, false
	}
	twice := false
	i = s.space(i + 1)
	for i < len(prefix) && prefix[i] == '"' {
		end, err := s.str(i)
		if err != nil {
			break
		}
		key := string(s.key(span{i + 1, end - 1}))
		if i = s.space(end); i >= len(prefix) || prefix[i] != ':' {
			break
		}
		i = s.space(i + 1)
		end = s.skip(i)
		switch {
		case key == "method":
			method = true
		case key == "id" && end < len(prefix):
			twice = twice || id != nil
			id = prefix[i:end]
		}
		if i = s.space(end); i >= len(prefix) || prefix[i] != ',' {
			break
		}
		i = s.space(i + 1)
	}
	if twice {
		return nil, method
	}
	return id, method
}

// ownID reads an id of ours: an integer, a string that holds one (W15), or the same number
// as a fraction (1.0), as those write it to whom every number is one.
func ownID(raw []byte) (int64, bool) {
	if len(raw) > 2 && raw[0] == '"' {
		raw = raw[1 : len(raw)-1]
	} else if whole, zeros, ok := bytes.Cut(raw, []byte{'.'}); ok && len(bytes.Trim(zeros, "0")) == 0 {
		raw = whole
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil && len(raw) > 0 && raw[0] != '+' && n > 0
}
