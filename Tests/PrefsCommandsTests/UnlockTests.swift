#if os(Linux)
  import Foundation
  import TestSupport
  import Testing

  @testable import PrefsCommands

  #if canImport(Musl)
    import Musl
  #else
    import Glibc
  #endif

  @Suite("Unlocking for a while")
  struct UnlockTests {
    private func sample(isRefusedKeyrings: Bool) throws -> Tool {
      let tool = try Tool(isRefusedKeyrings: isRefusedKeyrings)
      try tool.succeed("set", "tokens/key", "value")
      try tool.seal("tokens")
      return tool
    }

    // MARK: - Both ways

    @Test("unlock serves later commands until lock, which needs no key", arguments: [false, true])
    func cycle(_ isRefusedKeyrings: Bool) throws {
      let tool = try sample(isRefusedKeyrings: isRefusedKeyrings)
      #expect(try tool.unlock("guess").code == 5)
      #expect(try tool.run("get", "tokens/key").code == 6)
      let run = try tool.unlock("vault", "-v")
      #expect(run.code == 0 && run.text == "")
      if isRefusedKeyrings { #expect(run.message.contains("agent")) }
      #expect(try tool.succeed("get", "tokens/key") == "value\n")
      try tool.succeed("set", "tokens/key", "--secret", "-", input: "secret")
      #expect(try tool.succeed("get", "tokens/key") == "secret\n")
      // Again, while it is unlocked.
      #expect(try tool.unlock("vault", "--ttl", "1d").code == 0)
      #expect(try tool.succeed("get", "tokens/key") == "secret\n")
      rename(tool.keyFile, tool.path("away"))
      try tool.succeed("lock")
      rename(tool.path("away"), tool.keyFile)
      #expect(try tool.run("get", "tokens/key").code == 6)
      try tool.succeed("lock")
    }

    @Test("A lock while it is being unlocked wins", arguments: [false, true])
    func lockedMeanwhile(_ isRefusedKeyrings: Bool) throws {
      let tool = try Tool(isRefusedKeyrings: isRefusedKeyrings)
      try tool.succeed("set", "tokens/key", "value")
      let (key, pipe, message) = (tool.path("vault-key"), tool.path("pipe"), tool.path("message"))
      try tool.succeed("seal", "tokens", "--vault-key-file", key)
      try #require(mkfifo(pipe, 0o600) == 0)
      let unlock = try tool.spawn(
        ["unlock", "--vault-key-file", pipe],
        files: [(0, "/dev/null", O_RDONLY), (1, "/dev/null", O_WRONLY), (2, message, O_WRONLY | O_CREAT)])
      // The command reads its key.
      let writer = try pipeWriter(pipe)
      try tool.succeed("lock")
      try writer.write(contentsOf: tool.contents(key))
      try writer.close()
      #expect(try Tool.exitCode(of: unlock) == 9)
      #expect(String(decoding: try tool.contents(message), as: UTF8.self).contains("try again"))
      #expect(try tool.run("get", "tokens/key").code == 6)
      #expect(try tool.agentSockets().isEmpty)
      #expect(try tool.run("unlock", "--vault-key-file", key).code == 0)
      #expect(try tool.succeed("get", "tokens/key") == "value\n")
      try tool.succeed("lock")
    }

    @Test("It ends after its time to live", arguments: [false, true])
    func timeToLive(_ isRefusedKeyrings: Bool) throws {
      let tool = try sample(isRefusedKeyrings: isRefusedKeyrings)
      let begin = ContinuousClock.now
      #expect(try tool.unlock("vault", "--ttl", "2s").code == 0)
      while try tool.run("get", "tokens/key").code == 0 {
        try #require(ContinuousClock.now - begin < .seconds(60), "it is still unlocked")
      }
      // The kernel counts whole seconds, and may be at the end of one.
      #expect(ContinuousClock.now - begin > .milliseconds(500))
      #expect(try tool.run("get", "tokens/key").code == 6)
      if isRefusedKeyrings { #expect(try tool.agentSockets().isEmpty) }
    }

    @Test("A program that exec starts ignores no signal because of it", arguments: [false, true])
    func ignoredSignals(_ isRefusedKeyrings: Bool) throws {
      let tool = try sample(isRefusedKeyrings: isRefusedKeyrings)
      try tool.succeed("set", "plain/key", "value")
      let command = ["--", "/bin/grep", "SigIgn", "/proc/self/status"]
      let before = try tool.run(["exec", "-c", "plain"] + command, input: "".utf8)
      try tool.unlock()
      let run = try tool.run(["exec", "-c", "tokens"] + command, input: "".utf8)
      #expect(run.code == 0 && run.text.hasPrefix("SigIgn:") && run.text == before.text, "\(run), \(before)")
      try tool.succeed("lock")
    }

    @Test("Two stores are unlocked and locked separately", arguments: [false, true])
    func twoStores(_ isRefusedKeyrings: Bool) throws {
      let tool = try sample(isRefusedKeyrings: isRefusedKeyrings)
      let second = tool.path("second")
      try tool.succeed("set", "tokens/key", "other", "-d", second)
      try tool.seal("tokens", "-d", second)
      #expect(try tool.unlock("vault", "-d", second).code == 0)
      #expect(try tool.run("get", "tokens/key").code == 6)
      #expect(try tool.unlock().code == 0)
      #expect(try tool.succeed("get", "tokens/key") == "value\n")
      try tool.succeed("lock")
      #expect(try tool.succeed("get", "tokens/key", "-d", second) == "other\n")
      try tool.succeed("lock", "-d", second)
      #expect(try tool.run("get", "tokens/key", "-d", second).code == 6)
    }

    @Test("An invalid time is 2", arguments: ["0s", "15", "m", "-1m", "+1m", "1.5h", "1w", "9999d", ""])
    func badTime(_ time: String) throws {
      #expect(try Tool().run("unlock", "--ttl=\(time)").code == 2)
    }

    // MARK: - The keyring

    @Test("In the keyring only this user can read the key, for the given time")
    func keyring() throws {
      let tool = try sample(isRefusedKeyrings: false)
      let run = try tool.unlock("vault", "--ttl", "2m", "-v")
      #expect(run.code == 0)
      // Where the tests run in a container, there is none.
      guard run.message.contains("kernel keyring\n") else { return }
      let doctor = try tool.succeed("doctor", "--json")
      let id = try #require(doctor.firstMatch(of: /"store":"([0-9a-f]{32})"/)).output.1
      func line() throws -> Substring? {
        String(decoding: try tool.contents("/proc/keys"), as: UTF8.self).split(separator: "\n").first {
          $0.contains("vault:\(id)")
        }
      }
      let fields = try #require(try line()).split(separator: " ")
      #expect(fields[4] == "3f0b0000" && fields[5] == "\(getuid())")
      #expect(["1m", "2m"].contains(fields[3]))
      #expect(try tool.agentSockets().isEmpty)
      try tool.succeed("lock")
      // It is listed until the kernel has cleared it away, as invalidated.
      if let left = try line() { #expect(left.split(separator: " ")[1].contains("i")) }
    }

    @Test("The mark of locks in the keyring is replaced, where one was left")
    func mark() throws {
      let keyring = KernelKeyring.ofLocks(storeID: UUID().uuidString)
      try keyring.replaceMark()
      #expect(keyring.mark == nil)
      // Where the tests run in a container, there is none.
      guard try keyring.leaveMark() == nil else { return }
      defer { keyring.forget() }
      let first = try #require(keyring.mark)
      #expect(try keyring.leaveMark() == nil)
      #expect(keyring.mark == first)
      try keyring.replaceMark()
      let second = try #require(keyring.mark)
      #expect(second != first)
      keyring.forget()
      #expect(keyring.mark == nil)
    }

    // MARK: - The agent

    @Test("The agent's socket is only for its user, and removed with it")
    func socketModes() throws {
      let tool = try sample(isRefusedKeyrings: true)
      try tool.unlock()
      let socket = try #require(try tool.agentSockets().first)
      #expect(try tool.mode(tool.sockets) == 0o700 && tool.mode(socket) == 0o600)
      try tool.succeed("lock")
      #expect(try tool.agentSockets().isEmpty)
      #expect(try tool.agent() == nil)
    }

    @Test("The agent is detached, with no foreign descriptors, and the key in no arguments or files")
    func detached() throws {
      let tool = try sample(isRefusedKeyrings: true)
      try tool.unlock()
      let agent = try #require(try tool.agent())
      let socket = try #require(try tool.agentSockets().first)
      let words = try tool.contents("/proc/\(agent)/cmdline").split(separator: 0).map {
        String(decoding: $0, as: UTF8.self)
      }
      #expect(words == ["prefs", "agent", "--socket", socket, "--ttl", "900s"])
      #expect(getsid(agent) == agent)
      let folder = "/proc/\(agent)/fd"
      for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
        let target = try FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")
        #expect(["/dev/null", "socket:", "anon_inode:"].contains { target.hasPrefix($0) }, "\(name): \(target)")
      }
      let limits = String(decoding: try tool.contents("/proc/\(agent)/limits"), as: UTF8.self)
      #expect(limits.contains(#/Max core file size +0 /#))
      try tool.succeed("lock")
    }

    @Test("SIGTERM ends the agent, and its socket is removed")
    func terminated() throws {
      let tool = try sample(isRefusedKeyrings: true)
      try tool.unlock()
      try tool.end(#require(try tool.agent()), SIGTERM)
      #expect(try tool.agentSockets().isEmpty)
      #expect(try tool.run("get", "tokens/key").code == 6)
    }

    @Test("A socket without an agent is ignored, and replaced")
    func stale() throws {
      let tool = try sample(isRefusedKeyrings: true)
      try tool.unlock()
      try tool.end(#require(try tool.agent()), SIGKILL)
      #expect(try tool.agentSockets().count == 1)
      #expect(try tool.run("get", "tokens/key").code == 6)
      try tool.succeed("lock")
      #expect(try tool.unlock().code == 0)
      #expect(try tool.succeed("get", "tokens/key") == "value\n")
      try tool.succeed("lock")
    }

    @Test("A socket folder that others may enter is refused, and no socket in it used")
    func openFolder() throws {
      let tool = try sample(isRefusedKeyrings: true)
      try tool.unlock()
      chmod(tool.sockets, 0o755)
      #expect(try tool.run("get", "tokens/key").code == 6)
      let run = try tool.unlock()
      #expect(run.code == 11 && run.message.contains(tool.sockets))
      #expect(try tool.run("lock").code == 11)
      chmod(tool.sockets, 0o700)
      #expect(try tool.succeed("get", "tokens/key") == "value\n")
      try tool.succeed("lock")
      try FileManager.default.removeItem(atPath: tool.sockets)
      symlink(tool.home.path, tool.sockets)
      #expect(try tool.unlock().code == 11)
    }

    @Test("Another user gets no answer, even if the socket permits it", .enabled(if: getuid() == 0))
    func otherUser() throws {
      let tool = try sample(isRefusedKeyrings: true)
      try tool.unlock()
      let socket = try #require(try tool.agentSockets().first)
      for path in [tool.runtime, tool.sockets] { chmod(path, 0o755) }
      chmod(socket, 0o666)
      let child = try Child.run(Tool.worker, ["ask-as-other-user", "-", "-", socket])
      #expect(child.text == "0\n" && child.status == 0)
      chmod(tool.sockets, 0o700)
      #expect(try tool.succeed("get", "tokens/key") == "value\n")
      try tool.succeed("lock")
    }

    @Test("Without XDG_RUNTIME_DIR the sockets are in a folder of the user in /tmp")
    func fallbackFolder() throws {
      let tool = try sample(isRefusedKeyrings: true)
      let environment = ["XDG_RUNTIME_DIR": ""]
      func code(_ arguments: String...) throws -> Int32 {
        try tool.run(arguments, input: "".utf8, descriptors: [3: "vault"], environment: environment).code
      }
      #expect(try code("unlock", "--vault-passphrase-fd", "3") == 0)
      #expect(try tool.mode("/tmp/prefs-\(getuid())") == 0o700)
      #expect(try code("get", "tokens/key") == 0)
      #expect(try code("lock") == 0)
      #expect(try code("get", "tokens/key") == 6)
    }

    @Test("The agent cannot be started by hand")
    func byHand() throws {
      let tool = try Tool()
      #expect(try tool.run("agent", "--socket", tool.path("s"), "--ttl", "1s").code == 2)
      #expect(try !tool.succeed("--help").contains("agent"))
    }
  }

  extension Tool {
    /// The folder of the tool in that for sockets.
    fileprivate var sockets: String { runtime + "/prefs" }

    /// The sockets of agents.
    fileprivate func agentSockets() throws -> [String] {
      let folder = sockets
      guard exists(folder) else { return [] }
      let names = try FileManager.default.contentsOfDirectory(atPath: folder)
      return names.filter { $0.hasSuffix(".sock") }.map { "\(folder)/\($0)" }
    }

    /// The agent that keeps a key for this home.
    fileprivate func agent() throws -> pid_t? {
      try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { pid_t($0) }.first { process in
        let words = (try? contents("/proc/\(process)/cmdline")) ?? []
        let text = String(decoding: words, as: UTF8.self)
        return text.hasPrefix("prefs\0agent\0") && text.contains(home.path)
      }
    }

    /// Sends a signal, and waits until the agent is gone.
    fileprivate func end(_ agent: pid_t, _ signal: Int32) throws {
      kill(agent, signal)
      let begin = ContinuousClock.now
      while try self.agent() != nil {
        try #require(ContinuousClock.now - begin < .seconds(60), "the agent is still there")
        usleep(2000)
      }
    }
  }
#endif
