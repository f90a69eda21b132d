package main

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
	"github.com/tenonhq/tenon/servers"
)

func newServersLogin(a *app) *cobra.Command {
	var noBrowser bool
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Sign in to a server that wants OAuth",
		Long: "Asks the server where to sign in, opens that page in the browser, prints its address too, and waits up to ten\n" +
			"minutes for the browser to come back to a port of this machine. The tokens are kept encrypted in your state\n" +
			"folder, their key in the system's keyring where there is one; every tenon of yours uses and renews them. From\n" +
			"another machine forward the port first: set servers.NAME.auth.callback_port, then ssh -L PORT:127.0.0.1:PORT.",
		Example: "  tenon servers login portal\n  tenon servers login portal --no-browser",
		Args:    args(1, 1, "the name of a server"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, s, err := a.account(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer closing(h, &err)
			issuer, err := s.Login(cmd.Context(), func(address string) { a.visit(args[0], address, !noBrowser) })
			if err != nil {
				return err
			}
			tools, err := s.List(cmd.Context())
			if err != nil {
				return fmt.Errorf("you are signed in at %s, but: %w", issuer, err)
			}
			if a.isJSON() {
				return a.printJSON(map[string]any{"server": args[0], "issuer": issuer, "tools": len(tools)})
			}
			return a.write(fmt.Appendf(nil, "%s signed in to %s at %s (%d tools)\n", a.outStyle(green, "✓"), safeLine(args[0]), safeLine(issuer), len(tools)))
		},
	}
	cmd.Flags().BoolVar(&noBrowser, "no-browser", false, "only print the address")
	return cmd
}

func newServersLogout(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "logout NAME",
		Short: "Forget the sign-in to a server",
		Long: "Tells the authorization server that the tokens are used no more, where it takes that, and deletes them. The\n" +
			"server may go on accepting an access token until it expires.",
		Example: "  tenon servers logout portal",
		Args:    args(1, 1, "the name of a server"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			h, s, err := a.account(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer closing(h, &err)
			had, untold, err := s.Logout(cmd.Context())
			if err != nil {
				return err
			}
			if untold != nil {
				a.note("the tokens were not revoked: %s", untold)
			}
			if a.isJSON() {
				return a.printJSON(map[string]any{"server": args[0], "signed_in": had, "revoked": had && untold == nil})
			}
			text := "signed out of " + args[0]
			if !had {
				text = "there was no sign-in to " + args[0]
			}
			return a.write([]byte(safeLine(text) + "\n"))
		},
	}
}

// account opens a host for one server.
func (a *app) account(ctx context.Context, name string) (*host.Host, *servers.Server, error) {
	h, err := a.open(ctx, opening{connect: true, live: true})
	if err != nil {
		return nil, nil, err
	}
	s := h.Servers()[name]
	if s == nil {
		err = tenon.Errorf(tenon.CodeNotFound, "there is no server '%s'%s", name, didYouMean(name, serverNames(h)))
		closing(h, &err)
		return nil, nil, err
	}
	return h, s, nil
}

// visit has a person go to an address. It stands on stderr in any case, since the
// browser may be on another machine.
func (a *app) visit(name, address string, browser bool) {
	fmt.Fprintf(a.err, "Sign in to %s at:\n\n  %s\n\n", safeLine(name), safeLine(address))
	if !browser {
		return
	}
	if err := browse(address); err != nil {
		fmt.Fprintf(a.err, "The browser was not opened (%s); open the address yourself.\n", safeLine(err.Error()))
	}
}

// browse opens an http or https address in the person's browser. No shell sees
// it, and it is one argument that can be no option.
func browse(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return fmt.Errorf("it is no http or https address")
	}
	program, args := "xdg-open", []string{u.String()}
	switch runtime.GOOS {
	case "darwin":
		program = "open"
	case "windows":
		program, args = "rundll32", []string{"url.dll,FileProtocolHandler", u.String()}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return fmt.Errorf("there is no %s", program)
	}
	cmd := exec.Command(path, args...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	_ = cmd.Process.Release() // a browser outlives us; whether it shows the page only the person sees
	return nil
}
