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

// For errors.Is. ErrHidden is a value that was not asked for, or is sealed; after ErrUnavailable, a change that was sent may have been made.
var (
	ErrNotFound       = &Error{Name: "notFound"}
	ErrWrongKey       = &Error{Name: "wrongKey"}
	ErrKeyUnavailable = &Error{Name: "keyUnavailable"}
	ErrInvalidValue   = &Error{Name: "format"}
	ErrConflict       = &Error{Name: "conflict"}
	ErrBusy           = &Error{Name: "busy"}
	ErrRefused        = &Error{Name: "refused"}
	ErrLocked         = &Error{Name: "managed"}
	ErrHidden         = &Error{Name: "hidden"}
	ErrWrongType      = &Error{Name: "wrongType"}
	ErrUnavailable    = &Error{Name: "unavailable"}
)

const version = 1

var codes = map[string]int{
	"notFound": 3, "wrongKey": 5, "keyUnavailable": 6, "format": 8, "conflict": 9, "busy": 10, "refused": 11, "managed": 13,
	"hidden": 1, "wrongType": 1, "unavailable": 1,
}

func failure(kind *Error, format string, arguments ...any) *Error {
	return &Error{Name: kind.Name, Code: codes[kind.Name], Message: fmt.Sprintf(format, arguments...)}
}

// exitFailure is the error of a child that has ended at once.
func exitFailure(code int) *Error {
	name := "other"
	for known, number := range codes {
		if number == code && code > 1 {
			name = known
		}
	}
	return &Error{Name: name, Code: code, Message: fmt.Sprintf("prefs serve ended with exit code %d; standard error has its message.", code)}
}

// line is any line of the server.
type line struct {
	Serve    int             `json:"serve"`
	Program  string          `json:"program"`
	Maximum  int             `json:"maximum"`
	ID       *int            `json:"id"`
	OK       json.RawMessage `json:"ok"`
	Error    json.RawMessage `json:"error"`
	Watch    *int            `json:"watch"`
	Position string          `json:"position"`
	Changes  []struct {
		Item itemLine `json:"item"`
	} `json:"changes"`
	Unavailable *Error `json:"unavailable"`
}

func (l *line) failure() *Error {
	if l.Error == nil {
		return nil
	}
	var failed Error
	if err := json.Unmarshal(l.Error, &failed); err != nil {
		return failure(ErrUnavailable, "What prefs serve has sent is not understood: %v.", err)
	}
	return &failed
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
	waiting  map[int]func(line)
	last     int
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
	return &child{command: command, input: input, output: lines, patience: patience, waiting: map[int]func(line){}}, nil
}

func (c *child) readHello() error {
	text, err := c.output.ReadBytes('\n')
	if err != nil {
		_ = c.command.Wait()
		return exitFailure(c.command.ProcessState.ExitCode())
	}
	if err := json.Unmarshal(text, &c.hello); err != nil {
		return err
	}
	if c.hello.Serve != version {
		return failure(ErrUnavailable, "%s has version %d of the protocol; this package has %d.", c.hello.Program, c.hello.Serve, version)
	}
	return nil
}

// send sends a request; follow hands its answer to the handler, or end an error.
func (c *child) send(do string, members map[string]any, handler func(line)) error {
	c.writing.Lock() // So that numbers are in the order of the lines, and so of the answers.
	defer c.writing.Unlock()
	c.last++
	number := c.last
	request := map[string]any{"id": number, "do": do}
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
	c.lock.Lock()
	if c.waiting == nil {
		c.lock.Unlock()
		return failure(ErrUnavailable, "prefs serve has ended; nothing was changed.")
	}
	c.waiting[number] = handler
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
func (c *child) follow(notice func(line) error) error {
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
			if err := notice(next); err != nil {
				return err
			}
		} else if handler := c.take(next.ID); handler != nil {
			handler(next)
		}
	}
}

// take returns who waits for an answer. Without an ID it answers a line that is no request to the server, such as one that is nested too deeply.
func (c *child) take(id *int) func(line) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if id == nil {
		for number := range c.waiting {
			if number := number; id == nil || number < *id {
				id = &number
			}
		}
	}
	if id == nil {
		return nil
	}
	handler := c.waiting[*id]
	delete(c.waiting, *id)
	return handler
}

func (c *child) end() {
	_ = c.command.Process.Kill()
	_ = c.command.Wait()
	c.lock.Lock()
	waiting := c.waiting
	c.waiting = nil
	c.lock.Unlock()
	for _, handler := range waiting {
		handler(line{Error: json.RawMessage(`{"error":"unavailable","code":1,"message":"prefs serve ended before it answered; a change may have been made."}`)})
	}
}

func asError(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return failure(ErrUnavailable, "%v", err)
}
