import CofferCrypto
import Testing

@testable import CofferFleet

@Suite("The address of a bucket")
struct S3AddressTests {
  @Test("leads to Amazon's storage in a region, or to the endpoint")
  func servers() throws {
    let amazon = try S3Address("s3://team-data/fleets/web/?region=eu-central-1")
    #expect(amazon.base == "https://team-data.s3.eu-central-1.amazonaws.com" && amazon.path.isEmpty)
    #expect(amazon.host == "team-data.s3.eu-central-1.amazonaws.com" && amazon.prefix == "fleets/web/")
    #expect(amazon.pollInterval == .seconds(5))
    #expect(try S3Address("s3://team.data/web").base == "https://s3.us-east-1.amazonaws.com/team.data")
    let other = try S3Address("s3://data/web?endpoint=https://minio:9000&region=here&ca=/ca%20file.pem&poll=0.5")
    #expect(other.base == "https://minio:9000/data" && other.path == "/data" && other.host == "minio:9000")
    #expect(other.tls == HTTPTLS(authorities: "/ca file.pem") && other.pollInterval == .milliseconds(500))
    #expect(try S3Address("s3://data/web?endpoint=https://minio:443/").host == "minio")
    #expect(try S3Address("s3://data/web?endpoint=http://[::1]:80").host == "[::1]")
  }

  @Test(
    "has a bucket, a prefix, and options that are known",
    arguments: [
      "s3://", "s3://data", "s3://data/", "s3:///web", "s3://Data/web", "s3://da/web", "s3://a,b/web",
      "s3://data/a/../web",
      "s3://data/web?endpoint=minio:9000", "s3://data/web?endpoint=https://minio/path",
      "s3://data/web?endpoint=https://",
      "s3://data/web?endpoint=http://minio&ca=/ca.pem", "s3://data/web?poll=0", "s3://data/web?poll=x",
      "s3://data/web?region=",
      "s3://data/web?region=a/b", "s3://data/web?size=5", "s3://AKIA@data/web", "s3://data/web?poll=1&poll=2",
    ])
  func badAddress(_ address: String) {
    #expect {
      _ = try S3Address(address)
    } throws: { error in
      if case .badAddress(address, _) = error as? CarrierError { true } else { false }
    }
  }

  @Test("has no secret, which an error does not repeat")
  func secretInAddress() {
    #expect {
      _ = try S3Address("s3://AKIA:hunter2@data/web")
    } throws: { error in
      guard case .badAddress = error as? CarrierError else { return false }
      return !"\(error)".contains("hunter2")
    }
  }

  @Test("needs an access key that a header can have")
  func credentials() {
    for key in [nil, S3Credentials(accessKey: "a b", secretKey: SecretBytes(copying: "x"))] {
      #expect {
        _ = try S3Carrier(address: "s3://data/web", credentials: { key })
      } throws: { error in
        if case .badAddress("s3://data/web", _) = error as? CarrierError { true } else { false }
      }
    }
  }
}

@Suite("A file with access keys")
struct S3CredentialsTests {
  private func read(_ text: String, _ profile: String = "default") -> [String]? {
    let credentials = S3Credentials(file: SecretBytes(copying: text), profile: profile)
    func plain(_ secret: SecretBytes) -> String { secret.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
    return credentials.map { [$0.accessKey, plain($0.secretKey)] + ($0.sessionToken.map { [plain($0)] } ?? []) }
  }

  @Test("has sections, of which one is read, or none")
  func sections() {
    let file = """
      # keys
      [default]
      aws_access_key_id = AKIA1
      aws_secret_access_key=a/b+c==
      region = eu-central-1

      [ team ]\r
      \taws_secret_access_key = x=y \r
      ; a token
      aws_session_token = t0k
      aws_access_key_id =AKIA2
      """
    #expect(read(file) == ["AKIA1", "a/b+c=="])
    #expect(read(file, "team") == ["AKIA2", "x=y", "t0k"])
    #expect(read(file, "other") == nil)
    #expect(read("aws_access_key_id=A\naws_secret_access_key=s\n") == ["A", "s"])
    #expect(read("[default]\naws_access_key_id=A\naws_secret_access_key=\n") == nil)
    #expect(read("") == nil && read("[") == nil && read("=\n=[") == nil)
  }
}

@Suite("The XML of a storage")
struct S3XMLTests {
  private func read(_ text: String) throws -> [String] {
    var found: [String] = []
    try S3XML.read(Array(text.utf8)) { found.append("\($0)=\($1)") }
    return found
  }

  @Test("has elements and text")
  func elements() throws {
    let text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <List xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>a &amp;&#x20;&lt;b&gt;</Name><None/>
        <Item><Key>1</Key><Key></Key></Item>
      </List>

      """
    #expect(try read(text) == ["List/Name=a & <b>", "List/None=", "List/Item/Key=1", "List/Item/Key="])
  }

  @Test(
    "is refused if it is anything else",
    arguments: [
      "", "text", "<a>", "<a></b>", "<a></a><b/>", "<!DOCTYPE a []><a/>", "<a><!-- --></a>", "<a>&other;</a>",
      "<a>&#xd800;</a>",
      "<a>&amp</a>", "<a", "</a>", "<?xml", "<a><b><c><d><e><f><g><h><i/></h></g></f></e></d></c></b></a>",
      "<a>\u{FF}</a></a>",
    ])
  func invalid(_ text: String) {
    #expect(throws: S3XML.Invalid.self) { try read(text) }
  }
}
