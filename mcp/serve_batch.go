package mcp

import (
	"bytes"
	"net/http"
	"sync"

	"github.com/tenonhq/tenon/jsonrpc"
)

// batches is the only revision with batches. Its servers must accept them (2025-03-26, "Batching").
const batches = "2025-03-26"

// maxBatched bounds the requests of a batch that are handled at once.
const maxBatched = 16

// batchAnswer collects the responses to the requests of a batch. It is a JSON array, or an event stream if something
// else is sent before the last response.
type batchAnswer struct {
	out answer

	mu      sync.Mutex
	done    [][]byte
	refused int // of done: messages that were not handled
}

// request sends a message before the responses.
func (b *batchAnswer) request(message []byte) { b.out.request(message) }

// add records the response to one request.
func (b *batchAnswer) add(response []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done = append(b.done, response)
}

// refuse records that a message of the batch is refused. A nil id is written as null. It is called before any message
// is handled.
func (b *batchAnswer) refuse(id []byte, reason string) {
	b.refused++
	b.add(jsonrpc.AppendError(nil, id, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", reason)))
}

// finish sends the responses when all requests have ended.
func (b *batchAnswer) finish() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.out.mu.Lock()
	defer b.out.mu.Unlock()
	b.out.finished = true
	switch {
	case b.out.streaming:
		for _, one := range b.done {
			b.out.event(one)
		}
	case len(b.done) == 0:
		b.out.w.WriteHeader(http.StatusAccepted)
	default:
		status := http.StatusOK
		if b.refused == len(b.done) {
			status = http.StatusBadRequest
		}
		reply(b.out.w, status, append(append([]byte{'['}, bytes.Join(b.done, []byte{','})...), ']'))
	}
}

// batch handles the body of a POST if it is a batch of a client of revision 2025-03-26. For other clients, a batch is
// no message.
func (h *httpServer) batch(w http.ResponseWriter, r *http.Request, body []byte) bool {
	if t := bytes.TrimLeft(body, " \t\r\n"); len(t) == 0 || t[0] != '[' || h.s.cfg.NoLegacy {
		return false
	}
	all := &batchAnswer{out: answer{w: w}}
	var messages []jsonrpc.Message
	if !jsonrpc.Batch(body, func(one []byte, over bool) {
		var m jsonrpc.Message
		switch err := jsonrpc.Parse(one, &m); {
		case over:
			all.refuse(m.ID, jsonrpc.ErrBatch.Error())
		case err != nil:
			all.refuse(nil, err.Error())
		case m.Method == "initialize" && m.IsRequest():
			all.refuse(m.ID, "initialize must not be part of a batch")
		default:
			messages = append(messages, m)
		}
	}) {
		return false
	}
	if !speaks(w, r, nil) {
		return true
	}
	named := r.Header.Get("MCP-Protocol-Version") // clients of the revision do not send it
	var s *httpSession
	if !h.cfg.Sessionless || r.Header.Get("Mcp-Session-Id") != "" {
		if s = h.session(w, r); s == nil {
			return true
		}
		named = s.agreed()
	}
	if named != batches && (s != nil || named != "") {
		Refuse(w, http.StatusBadRequest, "batches belong to revision %s and are not allowed in %s; send one message "+
			"in each request", batches, named)
		return true
	}
	h.batched(r, s, messages, all)
	all.finish()
	return true
}

// batched handles the messages of a batch. s is nil without a session.
func (h *httpServer) batched(r *http.Request, s *httpSession, messages []jsonrpc.Message, all *batchAnswer) {
	var work sync.WaitGroup
	defer work.Wait()
	slots := make(chan struct{}, maxBatched)
	for i := range messages {
		m := &messages[i]
		switch {
		case m.IsRequest():
			slots <- struct{}{}
			work.Go(func() {
				defer func() { <-slots }()
				a := &answer{id: m.ID, whole: all}
				if s == nil {
					h.singly(r, m, a)
				} else {
					h.answer(r, s, m, a)
				}
			})
		case s != nil:
			h.noted(r, s, m)
		}
	}
}

// agreed returns the revision that the client of a session negotiated.
func (s *httpSession) agreed() string {
	s.serverConn.mu.Lock()
	defer s.serverConn.mu.Unlock()
	return s.version
}
