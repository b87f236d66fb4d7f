extension CarrierError: CustomStringConvertible {
  /// The problem, in a sentence for people; it names the carrier and never a password.
  public var description: String {
    switch self {
    case .unreachable(let carrier, let reason): "\(carrier) is not available: \(reason)"
    case .refused(let carrier, let reason): "\(carrier) refuses access: \(reason)"
    case .full(let carrier, let reason):
      """
      \(carrier) has no space left: \(reason). What was changed here waits on this host, and is pushed once there is room. Make room \
      there; an etcd also needs its alarm disarmed.
      """
    case .copied(let carrier, let tool, let sign):
      """
      \(tool) copies \(carrier) between hosts, as \(sign) shows: hosts that write to different copies would overwrite each other's \
      commits. Use a folder that all hosts see at once, or an etcd. Hosts that only read may use copies, with an invitation for many.
      """
    case .badAddress(let address, let reason): "\(address) is not the address of a carrier: \(reason)"
    case .tooLarge(let name?, let byteCount, let limit):
      "The object \(name) has \(byteCount) bytes; the carrier takes at most \(limit)."
    case .tooLarge(nil, let byteCount, let limit):
      "The commit has \(byteCount) bytes; the carrier takes at most \(limit) at once."
    case .tooManyChanges(let count, let limit):
      "The commit has \(count) changes; the carrier takes at most \(limit) at once."
    case .garbled(let carrier, let reason): "\(carrier) sent an invalid answer: \(reason)"
    }
  }
}
