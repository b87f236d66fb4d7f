import PrefsKeyring

KeyringTool.main()
