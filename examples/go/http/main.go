// Http adds an agent to an existing HTTP server: a handler of the program, and tenon's API.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"

	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/httpapi"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *addr); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr string) error {
	weather := host.NewFunction("get_weather", "The weather at a place", getWeather).ReadOnly()
	h, err := host.Open(ctx, host.Config{
		Model:     host.DemoModel, // a built-in script
		Functions: []host.Function{weather},
	})
	if err != nil {
		return err
	}
	defer h.Close()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /ask", func(w http.ResponseWriter, r *http.Request) {
		// A client that goes away cancels the run.
		q := host.Question{Text: r.FormValue("q"), BindContext: true}
		answer, err := host.Ask(r.Context(), h, q)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		fmt.Fprintln(w, answer.Text)
	})
	// Each user of the program has separate runs and sessions.
	mux.Handle("/api/", httpapi.New(h, httpapi.Config{Authenticate: func(r *http.Request) (httpapi.Caller, error) {
		user, password, _ := r.BasicAuth()
		if password != "secret" { // the program's own sign-in
			return httpapi.Caller{}, errors.New("sign in first")
		}
		return httpapi.User("user:" + user), nil // with a prefix, no user is "local", the program itself
	}}))

	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	server := &http.Server{Handler: mux}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

type place struct {
	Location string `json:"location"`
}

func getWeather(context.Context, place) (string, error) { return "15°C, Cloudy", nil }
