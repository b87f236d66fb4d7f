package coffer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Error has what the server says: the name of an exit code of `prefs`, the code, and a sentence.
type Error struct {
	Name    string `json:"error"`
	Code    int    `json:"code"`
	Message string `json:"message"`
	Store   string `json:"store"`
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is(err, ErrConflict) work for every error with that name.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Message == "" && other.Name == e.Name
}

// For errors.Is; others have their names. ErrHidden is a value that was not asked for, or is sealed; after ErrUnavailable, a change that was sent
// may have been made.
var (
	ErrNotFound     = &Error{Name: "notFound", Code: 3}
	ErrInvalidValue = &Error{Name: "format", Code: 8}
	ErrConflict     = &Error{Name: "conflict", Code: 9}
	ErrHidden       = &Error{Name: "hidden", Code: 1}
	ErrWrongType    = &Error{Name: "wrongType", Code: 1}
	ErrUnavailable  = &Error{Name: "unavailable", Code: 1}
)

const version = 1

var exitNames = map[int]string{5: "wrongKey", 6: "keyUnavailable", 8: "format", 10: "busy", 11: "refused"}

func failure(kind *Error, format string, arguments ...any) *Error {
	return &Error{Name: kind.Name, Code: kind.Code, Message: fmt.Sprintf(format, arguments...)}
}

// exitFailure is the error of a child that has ended at once.
func exitFailure(code int) *Error {
	name, ok := exitNames[code]
	if !ok {
		name = "other"
	}
	return &Error{Name: name, Code: code, Message: fmt.Sprintf("prefs serve ended with exit code %d; standard error has its message.", code)}
}

// line is any line of the server.
type line struct {
	Serve   int             `json:"serve"`
	Program string          `json:"program"`
	Maximum int             `json:"maximum"`
	Store   string          `json:"store"`
	OK      json.RawMessage `json:"ok"`
	Error   *Error          `json:"error"`
	Watch   *int            `json:"watch"`
	Changes []struct {
		Item Item `json:"item"`
	} `json:"changes"`
	Items       *[]Item `json:"items"`
	Unavailable *Error  `json:"unavailable"`
}

// child is one `prefs serve`: requests and their answers, and notices.
type child struct {
	command  *exec.Cmd
	input    io.WriteCloser
	output   *bufio.Reader
	patience time.Duration
	hello    line
	writing  sync.Mutex // Locked before lock.
	lock     sync.Mutex
	waiting  []func(line) // In the order of the requests, and so of the answers: all may have one ID.
}

func start(program string, arguments []string, patience time.Duration) (*child, error) {
	command := exec.Command(program, arguments...)
	command.Stderr = os.Stderr
	// A session of its own: an interrupt from the terminal is for the program, which may still have something to set, and no question for a
	// passphrase waits at a terminal.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, failure(ErrUnavailable, "prefs serve cannot be started: %v.", err)
	}
	lines := bufio.NewReaderSize(output, 1<<16)
	return &child{command: command, input: input, output: lines, patience: patience, waiting: []func(line){}}, nil
}

func (c *child) readHello() error {
	text, err := c.output.ReadBytes('\n')
	if err != nil {
		_ = c.command.Wait()
		return exitFailure(c.command.ProcessState.ExitCode())
	}
	if err := json.Unmarshal(text, &c.hello); err != nil {
		return failure(ErrUnavailable, "What prefs serve has sent is not understood: %v.", err)
	}
	if c.hello.Serve != version {
		return failure(ErrUnavailable, "%s has version %d of the protocol; this package has %d.", c.hello.Program, c.hello.Serve, version)
	}
	return nil
}

// send sends a request; follow hands its answer to the handler, or end an error.
func (c *child) send(do string, members map[string]any, handler func(line)) error {
	request := map[string]any{"id": 0, "do": do}
	for name, value := range members {
		request[name] = value
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(request); err != nil {
		return failure(ErrInvalidValue, "%v", err)
	}
	if text.Len() > c.hello.Maximum {
		return failure(ErrInvalidValue, "The server takes requests of at most %d bytes; this one has %d.", c.hello.Maximum, text.Len())
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	c.lock.Lock()
	if c.waiting == nil {
		c.lock.Unlock()
		return failure(ErrUnavailable, "prefs serve has ended; nothing was changed.")
	}
	c.waiting = append(c.waiting, handler)
	c.lock.Unlock()
	if pipe, ok := c.input.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = pipe.SetWriteDeadline(time.Now().Add(c.patience))
	}
	if _, err := c.input.Write(text.Bytes()); err != nil {
		_ = c.command.Process.Kill() // Its end is the answer to all that wait.
	}
	return nil
}

// follow hands on answers and notices, until the child ends.
func (c *child) follow(notice func(line)) error {
	for {
		text, err := c.output.ReadBytes('\n')
		if err != nil {
			return failure(ErrUnavailable, "prefs serve has ended.")
		}
		var next line
		if err := json.Unmarshal(text, &next); err != nil {
			return failure(ErrUnavailable, "What prefs serve has sent is not understood: %v.", err)
		}
		if next.Watch != nil {
			notice(next)
		} else if handler := c.take(); handler != nil {
			handler(next)
		}
	}
}

// take returns who waits for the next answer.
func (c *child) take() func(line) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if len(c.waiting) == 0 {
		return nil
	}
	handler := c.waiting[0]
	c.waiting = c.waiting[1:]
	return handler
}

func (c *child) end() {
	_ = c.command.Process.Kill()
	_ = c.command.Wait()
	c.lock.Lock()
	waiting := c.waiting
	c.waiting = nil
	c.lock.Unlock()
	err := failure(ErrUnavailable, "prefs serve ended before it answered; a change may have been made.")
	for _, handler := range waiting {
		handler(line{Error: err})
	}
}

func asError(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return failure(ErrUnavailable, "%v", err)
}
