package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/tenonhq/tenon"
	"github.com/tenonhq/tenon/host"
)

// The pages with which a principal signs in to a server of the gateway for itself. A client gets the address of the
// first page, which asks for the principal's token, so that nobody signs in for somebody else. The cookie binds the
// rest to that browser: a person who gets the address of the authorization server from somebody else lacks it.

// signInCookie returns the cookie of a browser for one sign-in, so that several of them can go on in one browser. state
// is the one of the request to the authorization server. The origin of the link decides about the cookie, because a
// proxy may terminate TLS. Over https, the prefix of its name keeps other hosts of the domain from setting it.
func signInCookie(origin, state string) *http.Cookie {
	sum := sha256.Sum256([]byte(state))
	cookie := &http.Cookie{Name: "tenon-sign-in-" + hex.EncodeToString(sum[:8]), Path: "/sign-in", HttpOnly: true,
		SameSite: http.SameSiteLaxMode} // lax: the browser comes from another site
	switch u, err := url.Parse(origin); {
	case err != nil:
	case u.Scheme == "https":
		cookie.Name, cookie.Path, cookie.Secure = "__Host-"+cookie.Name, "/", true
	default:
		cookie.Path = strings.TrimSuffix(u.Path, "/") + cookie.Path
	}
	return cookie
}

// signInStyle is the style sheet of the pages.
const signInStyle = lostStyle + `form{display:flex;gap:.5rem;margin:0}input,button{font:inherit;padding:.4rem .6rem}` +
	`#error{color:#c4302b}`

// signInScript sends the token of the form in a header, and goes to the authorization server. It takes the token of the
// workbench into the form if the same tab has it.
const signInScript = `const form=document.querySelector("form"),input=form.querySelector("input"),` +
	`error=document.getElementById("error");input.value=sessionStorage.getItem("tenon.token")??"";input.focus();` +
	`form.addEventListener("submit",async event=>{event.preventDefault();error.textContent="";try{` +
	`const answer=await fetch(location.pathname,` +
	`{method:"POST",headers:{Authorization:"Bearer "+input.value.trim()}});` +
	`const body=await answer.json();if(answer.ok)location.assign(body.address);` +
	`else error.textContent=body.error?.message??"tenon refuses the token"}` +
	`catch{error.textContent="tenon does not answer"}});`

// signInPolicy returns the Content Security Policy of the pages.
var signInPolicy = sync.OnceValue(func() string {
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; connect-src 'self'; " +
		"style-src " + hash(signInStyle) + "; script-src " + hash(signInScript)
})

// sendSignIn sends a page. body is HTML.
func (c *call) sendSignIn(status int, title, body string) {
	head := c.w.Header()
	head.Set("Content-Security-Policy", signInPolicy())
	head.Set("Referrer-Policy", "no-referrer") // the address of the page is a secret
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Content-Type", "text/html; charset=utf-8")
	head.Set("Cache-Control", "no-store")
	c.w.WriteHeader(status)
	if c.req.Method != http.MethodHead {
		_, _ = fmt.Fprintf(c.w, "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" "+
			"content=\"width=device-width\"><title>%s - tenon</title><style>%s</style><main><h1>%s</h1>%s</main>"+
			"</html>\n", html.EscapeString(title), signInStyle, html.EscapeString(title), body)
	}
}

// refuseSignIn sends the page about an error.
func (c *call) refuseSignIn(err error) {
	p, _ := c.problem(err)
	text := c.h.Service().Callers().Mask([]byte(tenon.Visible(p.Detail))) // before its characters are escaped
	c.sendSignIn(p.Status, "Not signed in", "<p>"+html.EscapeString(string(text))+"</p>")
}

// signInPage asks for the token of the principal for whom the link is.
func (c *call) signInPage() error {
	link, err := c.cfg.Gateway.SignIn(c.req.PathValue("ticket"))
	if err != nil {
		c.refuseSignIn(err)
		return nil
	}
	who, server := html.EscapeString(tenon.Visible(string(link.Principal))), tenon.Visible(link.Server)
	c.sendSignIn(http.StatusOK, "Sign in to "+server, "<p>An MCP client of <b>"+who+"</b> uses the server <b>"+
		html.EscapeString(server)+"</b>, which wants a sign-in. Only calls of "+who+" will use it.</p><p>Go on only "+
		"if you are "+who+" and your client sent you here.</p>"+
		"<form><label>Your token for tenon <input type=\"password\" "+
		"autocomplete=\"off\" required></label><button>Continue</button></form><p id=\"error\" role=\"alert\"></p>"+
		"<script>"+signInScript+"</script>")
	return nil
}

// beginSignIn verifies that the browser's user is the principal of the link, and answers with the address of the
// authorization server.
func (c *call) beginSignIn() error {
	ticket := c.req.PathValue("ticket")
	link, err := c.cfg.Gateway.SignIn(ticket)
	if err != nil {
		return err
	}
	c.req.SetPathValue("endpoint", link.Endpoint) // for which an access token must be
	if c.caller, err = c.who(); err != nil {
		if tenon.ErrorCode(err) == tenon.CodeAuth {
			err = refuse(http.StatusUnauthorized, tenon.CodeAuth, "%w", err)
		}
		return err
	}
	address, browser, err := c.cfg.Gateway.BeginSignIn(c.ctx(), ticket, c.caller.Principal)
	if err != nil {
		return err
	}
	to, err := url.Parse(address)
	if err != nil {
		return tenon.Errorf(tenon.CodeProtocol, "the authorization server has no valid address")
	}
	cookie := signInCookie(link.Origin, to.Query().Get("state"))
	cookie.Value, cookie.MaxAge = browser, 600
	http.SetCookie(c.w, cookie)
	return c.answer(http.StatusOK, map[string]string{"address": address})
}

// endSignIn ends the sign-in of a browser that comes back from the authorization server.
func (c *call) endSignIn() error {
	back := c.req.URL.Query()
	link, err := c.cfg.Gateway.EndSignIn(c.ctx(), back, func(link host.SignInLink) string {
		cookie, err := c.req.Cookie(signInCookie(link.Origin, back.Get("state")).Name)
		if err != nil {
			return ""
		}
		return cookie.Value
	})
	if link != (host.SignInLink{}) {
		cookie := signInCookie(link.Origin, back.Get("state"))
		cookie.MaxAge = -1 // deletes it
		http.SetCookie(c.w, cookie)
	}
	if err != nil {
		c.refuseSignIn(err)
		return nil
	}
	c.sendSignIn(http.StatusOK, "Signed in", "<p>tenon uses the sign-in to <b>"+
		html.EscapeString(tenon.Visible(link.Server))+"</b> for calls of <b>"+
		html.EscapeString(tenon.Visible(string(link.Principal)))+"</b>. Go back to your client and call again. You "+
		"can close this page.</p>")
	return nil
}

// isSignInOrigin reports whether pages for sign-ins have an origin behind a proxy.
func (c *call) isSignInOrigin(o string) bool {
	auth := c.oauth()
	if auth == nil || !strings.HasPrefix(c.route.pattern, "/sign-in/") {
		return false
	}
	u, err := url.Parse(auth.URL)
	return err == nil && o == u.Scheme+"://"+u.Host
}
