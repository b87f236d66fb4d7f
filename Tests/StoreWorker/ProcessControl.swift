#if os(Linux)
  import Foundation

  /// prctl(2), which is variadic in C; its arguments are integers, which are passed alike in both forms.
  func processControl(
    _ option: CInt, _ second: CUnsignedLong, _ third: CUnsignedLong, _ fourth: CUnsignedLong, _ fifth: CUnsignedLong
  ) -> CInt {
    typealias ProcessControl = @convention(c) (CInt, CUnsignedLong, CUnsignedLong, CUnsignedLong, CUnsignedLong) -> CInt
    return unsafeBitCast(dlsym(nil, "prctl"), to: ProcessControl.self)(option, second, third, fourth, fifth)
  }

  /// Makes the kernel refuse add_key, request_key and keyctl with EPERM, as the filters of containers do (seccomp(2)).
  func refuseKeyrings() {
    struct Instruction {
      let code: UInt16
      let ifTrue: UInt8
      let ifFalse: UInt8
      let operand: UInt32
    }
    struct Program {
      let count: UInt16
      let instructions: UnsafePointer<Instruction>
    }
    #if arch(x86_64)
      let calls: ClosedRange<UInt32> = 248...250
    #else
      let calls: ClosedRange<UInt32> = 217...219
    #endif
    let instructions = [
      Instruction(code: 0x20, ifTrue: 0, ifFalse: 0, operand: 0),  // Load the number of the call.
      Instruction(code: 0x35, ifTrue: 0, ifFalse: 2, operand: calls.lowerBound),  // Below: allow.
      Instruction(code: 0x25, ifTrue: 1, ifFalse: 0, operand: calls.upperBound),  // Above: allow.
      Instruction(code: 0x06, ifTrue: 0, ifFalse: 0, operand: 0x0005_0000 | UInt32(EPERM)),
      Instruction(code: 0x06, ifTrue: 0, ifFalse: 0, operand: 0x7fff_0000),
    ]
    instructions.withUnsafeBufferPointer { buffer in
      guard let start = buffer.baseAddress else { return }
      withUnsafePointer(to: Program(count: UInt16(buffer.count), instructions: start)) { program in
        let (noNewPrivileges, seccomp): (CInt, CInt) = (38, 22)
        guard processControl(noNewPrivileges, 1, 0, 0, 0) == 0,
          processControl(seccomp, 2, CUnsignedLong(UInt(bitPattern: program)), 0, 0) == 0
        else { fatalError("the kernel takes no filter") }
      }
    }
  }
#endif
