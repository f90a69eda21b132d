package cli

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// surface is a host's handlers. It counts the requests that may begin runs and whose response has not begun, so that a
// host that was replaced is closed after it has answered them.
type surface struct {
	local  http.Handler // at the socket
	remote http.Handler // over TCP
	open   sync.WaitGroup
}

// answerTime is how long a replaced host waits for responses to begin.
const answerTime = 30 * time.Second

// show makes a surface the current one. Requests that have found the previous one are counted there.
func (s *server) show(now *surface) {
	s.turn.Lock()
	defer s.turn.Unlock()
	s.surface = now
}

// at returns a handler that calls one of the handlers of the current surface.
func (s *server) at(pick func(*surface) http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.turn.RLock()
		now := s.surface
		if r.Method == http.MethodGet || r.Method == http.MethodHead { // such a request may last, and begins no run
			s.turn.RUnlock()
			pick(now).ServeHTTP(w, r)
			return
		}
		now.open.Add(1)
		s.turn.RUnlock()
		u := &unanswered{ResponseWriter: w, begun: sync.OnceFunc(now.open.Done)}
		defer u.begun()
		pick(now).ServeHTTP(u, r)
	})
}

func (u *surface) atSocket() http.Handler { return u.local }
func (u *surface) overTCP() http.Handler  { return u.remote }

// answered waits until all counted responses have begun, at most for answerTime or until ctx ends. The surface is no
// longer the current one.
func (u *surface) answered(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, answerTime)
	defer stop()
	done := make(chan struct{})
	go func() { // ends with the last request; the server waits for requests before the process ends
		defer close(done)
		u.open.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// unanswered is a [http.ResponseWriter] that notices the begin of the response.
type unanswered struct {
	http.ResponseWriter
	begun func()
}

// WriteHeader implements [http.ResponseWriter].
func (u *unanswered) WriteHeader(status int) {
	u.ResponseWriter.WriteHeader(status)
	if status >= http.StatusOK {
		u.begun()
	}
}

// Write implements [http.ResponseWriter].
func (u *unanswered) Write(b []byte) (int, error) {
	u.begun()
	return u.ResponseWriter.Write(b)
}

// Unwrap lets [http.ResponseController] find the underlying writer.
func (u *unanswered) Unwrap() http.ResponseWriter { return u.ResponseWriter }

var _ http.ResponseWriter = (*unanswered)(nil)
