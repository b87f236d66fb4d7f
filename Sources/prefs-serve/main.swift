import PrefsServe

ServeTool.main()
