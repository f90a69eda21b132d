package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/tenonhq/tenon/config"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
	"github.com/tenonhq/tenon/model"
)

// chatPairs is the number of requests of each kind in one round.
const chatPairs = 300

// measureChat compares POST /chat with the same run through the Go API. Both are ratios to the bare request
// to a model that responds at once. They take turns in one process.
func measureChat(s *session) error {
	var over, plain, chat, goAPI, bare []float64
	for range s.rounds {
		dir, err := os.MkdirTemp(s.tmp, "chat-")
		if err != nil {
			return err
		}
		c, g, m, err := s.chatRound(dir, chatPairs)
		if err != nil {
			return err
		}
		over, plain = append(over, (c-m)/(g-m)), append(plain, c/g)
		chat, goAPI, bare = append(chat, c*1e6), append(goAPI, g*1e6), append(bare, m*1e6)
	}
	s.add("CHAT.p50", "POST /chat: p50 without the model's time, against the same run through the Go API",
		"ratio", over)
	s.add("CHAT.whole", "POST /chat: p50 against the same run through the Go API, the model's time included",
		"ratio", plain)
	s.add("CHAT.ours", "POST /chat: p50", "µs", chat)
	s.add("CHAT.go", "the same run through the Go API: p50", "µs", goAPI)
	s.add("CHAT.model", "the bare request to the model: p50", "µs", bare)
	return nil
}

// chatRound returns the p50 of POST /chat, of the same run through the Go API, and of the bare request to the
// model, in seconds.
func (s *session) chatRound(dir string, pairs int) (chat, goAPI, bare float64, err error) {
	answer, stopModel, err := s.startModel(0)
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, stopModel()) }()
	h, err := host.Open(s.ctx, host.Config{Home: dir, LookupEnv: os.LookupEnv,
		Config: &config.Config{Models: map[string]model.Config{"mock": {Provider: "openai-compatible", Model: "mock",
			BaseURL: answer}}}, Model: "mock"})
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, 0, 0, err
	}
	web := &http.Server{Handler: httpapi.Handler(h)}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(l) }()
	defer func() {
		err = errors.Join(err, web.Close())
		if e := <-ended; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}()
	tr := &http.Transport{DisableCompression: true}
	defer tr.CloseIdleConnections()
	c := &asker{client: &http.Client{Transport: tr}, ctx: s.ctx}
	url := "http://" + l.Addr().String()
	var took [3][]float64
	for i := -pairs / 10; i < pairs; i++ { // the first requests warm up
		for k, ask := range []func() error{
			func() error { return c.chat(url) },
			func() error { return goAPIRun(s.ctx, h) },
			func() error { return c.model(answer) },
		} {
			start := time.Now()
			if err := ask(); err != nil {
				return 0, 0, 0, err
			}
			if i >= 0 {
				took[k] = append(took[k], time.Since(start).Seconds())
			}
		}
	}
	return percentile(took[0], 50), percentile(took[1], 50), percentile(took[2], 50), nil
}

// goAPIRun makes one run through the Go API and reads its report.
func goAPIRun(ctx context.Context, h *host.Host) error {
	run := ""
	for e, err := range h.Stream(ctx, host.Question{Text: p6Question}) {
		if err != nil {
			return err
		}
		run = e.Run
	}
	r, err := h.Runs().Open(run).Report(ctx)
	if err == nil && r.Answer != p6Answer {
		err = fmt.Errorf("the answer is %.200q", r.Answer)
	}
	return err
}
