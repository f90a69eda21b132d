package httpapi

import (
	"crypto/sha256"
	"strconv"
	"sync"
)

// maxAbandoned bounds the requests that are remembered because their clients disconnected.
const maxAbandoned = 1024

// abandoned remembers the runs whose clients disconnected before the answer, by the digest of their requests. The SDKs
// of OpenAI and Anthropic repeat a request after their own timeout. They do not send an Idempotency-Key then, but only
// the number of the attempt in X-Stainless-Retry-Count. Through abandoned, the repeated request finds the run of the
// previous attempt. The zero value is empty. It is safe for concurrent use.
type abandoned struct {
	mu   sync.Mutex
	list []abandonedRun // oldest first
}

type abandonedRun struct {
	request [sha256.Size]byte
	run     string
}

// add remembers a run. Beyond maxAbandoned runs, the oldest one is forgotten.
func (a *abandoned) add(request [sha256.Size]byte, run string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.list) == maxAbandoned {
		a.list = append(a.list[:0], a.list[1:]...)
	}
	a.list = append(a.list, abandonedRun{request, run})
}

// take returns the last run of a request and forgets it. It returns "" if there is none.
func (a *abandoned) take(request [sha256.Size]byte) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := len(a.list) - 1; i >= 0; i-- {
		if a.list[i].request == request {
			run := a.list[i].run
			a.list = append(a.list[:i], a.list[i+1:]...)
			return run
		}
	}
	return ""
}

// digest identifies the request by caller, path and body.
func (c *call) digest() [sha256.Size]byte {
	return sha256.Sum256([]byte(string(c.caller.Principal) + "\n" + c.req.URL.Path + "\n" + string(c.body)))
}

// attemptBefore returns the run of an attempt that the client gave up before it repeated the request, or "".
func (c *call) attemptBefore() string {
	n, err := strconv.Atoi(c.req.Header.Get("X-Stainless-Retry-Count"))
	if err != nil || n < 1 {
		return ""
	}
	return c.left.take(c.digest())
}
