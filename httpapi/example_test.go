package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

// weather is a toolset written in Go.
type weather struct{}

func (weather) Tools(context.Context) ([]tenon.Tool, error) {
	readOnly := true
	return []tenon.Tool{{Remote: "get_weather", Input: json.RawMessage(`{"type":"object","properties":{"location":{"type":"string"}}}`),
		Annotations: tenon.Annotations{ReadOnly: &readOnly}}}, nil
}

func (weather) Call(context.Context, tenon.Call) (*tenon.Result, error) {
	return &tenon.Result{Content: []tenon.Content{tenon.Text("15°C and cloudy")}}, nil
}

// A program uses tenon behind its own HTTP server with its own users. Each user has separate runs and sessions.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "tenon-example-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	h, err := host.Open(context.Background(), host.Config{Home: dir, Model: host.DemoModel, Toolsets: map[string]tenon.Toolset{"demo": weather{}}})
	if err != nil {
		panic(err)
	}
	defer h.Close()
	mux := http.NewServeMux()
	mux.Handle("/", httpapi.New(h, httpapi.Config{APIs: []string{httpapi.Native, httpapi.ResearchAI},
		Authenticate: func(req *http.Request) (httpapi.Caller, error) {
			user := req.Header.Get("X-User") // of the program's own sign-in
			if user == "" {
				return httpapi.Caller{}, tenon.Errorf(tenon.CodeAuth, "sign in first")
			}
			return httpapi.User(user), nil
		}}))
	s := httptest.NewServer(mux)
	defer s.Close()
	ask := func(user string) (status int, answer struct{ Response, Error string }) {
		req, err := http.NewRequest(http.MethodPost, s.URL+"/chat", strings.NewReader(`{"message":"What is the weather in London?"}`))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-User", user)
		res, err := s.Client().Do(req)
		if err != nil {
			panic(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			panic(err)
		}
		return res.StatusCode, answer
	}
	fmt.Println(ask("anna"))
	fmt.Println(ask(""))
	// Output:
	// 200 {The current weather in London is 15°C and cloudy. }
	// 401 { sign in first}
}
